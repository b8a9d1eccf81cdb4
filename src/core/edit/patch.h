// SPDX-License-Identifier: Apache-2.0
// Unified diffs, git's extensions included: parsing, and applying to bytes. Touches no file, recurses nowhere.
//
// What language models write instead is accepted too, if there is no exact reading and only one place fits: hunks
// without line numbers, lines that lost their trailing blanks, and the form that begins with "*** Begin Patch". The
// report says what was tolerated (enum patch_tolerated).
//
// Errors as error.h says. Codes: invalid_patch, binary_patch, too_large, patch_mismatch, already_applied,
// patch_ambiguous, already_exists, out_of_memory, timeout, cancelled. Line numbers count from 1, sizes are bytes.
#ifndef SBA_CORE_PATCH_H
#define SBA_CORE_PATCH_H

#include "core/base/buffer.h"
#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PATCH_MAX_SIZE = 64 << 20,
    PATCH_MAX_FILES = 10000,
    PATCH_MAX_HUNKS = 1000000,
    PATCH_MAX_NAME_LINE = 16 << 10,
    PATCH_MAX_TARGET = 1 << 30, // bytes of a file to apply to
    PATCH_MAX_FUZZ = 2,
};

// How the diff differs from what diff and git write. The first three are of the whole diff, the others of a file.
enum patch_tolerated {
    PATCH_CODE_FENCE = 1 << 0,      // a line of ``` around it
    PATCH_PROSE = 1 << 1,           // words around it, not those of a mail
    PATCH_BEGIN_PATCH = 1 << 2,     // the form of "*** Begin Patch"
    PATCH_NO_GIT_LINE = 1 << 3,     // git's header without "diff --git"
    PATCH_NO_NUMBERS = 1 << 4,      // a hunk without line numbers, found by its lines
    PATCH_BLANK_LINES = 1 << 5,     // blank lines of context without their leading blank, or between hunks
    PATCH_TRAILING_BLANKS = 1 << 6, // the file's lines end in blanks that the diff's lost
    PATCH_FINAL_NEWLINE = 1 << 7,   // the file ends without a newline, which the diff does not say; it still does
    PATCH_TOLERATED_COUNT = 8,
};

// What the names of a "diff --git" line say about their first directory.
enum patch_prefix {
    PATCH_PREFIX_UNKNOWN, // nothing: there is no such line, or its names cannot be told apart
    PATCH_PREFIX_NONE,    // both names are the same: --no-prefix
    PATCH_PREFIX_GIT,     // they differ in the first directory alone, which is not part of the names
};

enum patch_action { PATCH_MODIFIED, PATCH_CREATED, PATCH_DELETED, PATCH_RENAMED, PATCH_COPIED, PATCH_MODE_CHANGED };

// One file of a diff. Names are as written, but unquoted. They hold no NUL and are never empty.
struct patch_file {
    char *old_name; // NULL: /dev/null, or nothing said
    char *new_name;
    char *from; // of a rename or copy; these names have no prefix
    char *to;
    enum patch_action action;
    bool git;       // has a "diff --git" line
    bool plain;     // its names have no prefix
    bool not_empty; // its "index" line names an old content that is not empty
    enum patch_prefix prefix;
    bool whole;        // it is deleted, whatever it holds
    bool may_create;   // its one hunk removes nothing: if there is no such file, it is created
    unsigned old_mode; // as git writes it: 0100644, 0100755, 0120000 for a link; 0: not said
    unsigned new_mode;
    unsigned tolerated; // known before it is applied
    uint32_t line;      // of the diff where it begins
    uint32_t offset;    // the same in bytes
    uint32_t first_hunk;
    uint32_t hunk_count;
};

// One hunk: offsets into the diff, which must outlive the patch.
struct patch_hunk {
    uint32_t header, header_size; // the @@ line
    uint32_t body, body_end;
    uint32_t line; // of the @@ line
    uint32_t old_start, old_count;
    uint32_t new_start, new_count;
    bool recounted;  // the counts are of the body, because those written were wrong
    bool crlf, lf;   // some line of the body ends so
    bool by_content; // it has no numbers; header to body are its @@ lines, if it has any
    bool at_end;     // it belongs at the end of the file
};

struct patch {
    const char *diff; // not owned
    size_t size;
    struct patch_file *files;
    uint32_t file_count;
    struct patch_hunk *hunks;
    uint32_t hunk_count;
    unsigned tolerated;
};

struct patch_report {
    uint32_t added, removed; // lines
    uint32_t offset;         // largest distance of a hunk from where its @@ line says, in lines
    uint32_t fuzz;           // most context lines left out at one end of a hunk
    uint32_t recounted;      // hunks
    char line_ends;          // 'c' or 'l': the diff's line ends were made the file's, CRLF or LF; 0: taken as they were
    unsigned tolerated;      // of the file
};

// Parses diff into *patch, which the caller frees with patch_free, also after an error.
int patch_parse(const char *diff, size_t size, struct patch *patch, struct error *error);

void patch_free(struct patch *patch);

// Appends to out the bytes that the hunks of a file make of bytes, and fills *report.
//
// A hunk is looked for at its line number, then at the nearest other place (of two that are as near, the later), then
// the same with one and two context lines less at its ends. Hunks keep their order and never overlap. A hunk with less
// context after than before belongs at the end of the file. One with less context before, at line 1, belongs at its
// beginning.
//
// A hunk without numbers, or one that fits nowhere so, is looked for by its lines alone: first exactly, then ignoring
// blanks at the ends of the file's lines and a missing last newline. It must fit in one place. If it fits in several,
// the lines that its @@ names may tell which; else it is patch_ambiguous.
int patch_apply(const struct patch *patch, uint32_t file, const char *bytes, size_t size, struct buffer *out,
                struct patch_report *report, struct error *error);

#endif
