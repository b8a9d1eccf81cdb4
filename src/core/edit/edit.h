// SPDX-License-Identifier: Apache-2.0
// Edits of a file: where their lines stand in it, and what it becomes. Touches no file.
//
// A hunk of a diff and a text to replace are the same here: lines that are kept, removed and added. They are looked
// for as they are, then without blanks at line ends, then without indentation. What was overlooked (enum
// edit_tolerated) is told, and only overlooked where one place fits.
//
// The time is linear in the bytes of file and edit, but for places that differ in nothing but indentation. Long work
// asks for the interrupt.
//
// Errors as error.h says. Codes: patch_mismatch, already_applied, patch_ambiguous, too_large, out_of_memory, timeout,
// cancelled. Lines count from 1, sizes are bytes.
#ifndef SBA_CORE_EDIT_H
#define SBA_CORE_EDIT_H

#include "core/base/buffer.h"
#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EDIT_MAX_DIFF = 64 << 20,
    EDIT_MAX_HUNKS = 100000,
    EDIT_MAX_TARGET = 1 << 30, // bytes of a file
    EDIT_MAX_FUZZ = 2,
};

// How the file differs from what the edit says.
enum edit_tolerated {
    EDIT_BLANK_LINES = 1 << 0,     // lines of context in the diff without their leading blank
    EDIT_TRAILING_BLANKS = 1 << 1, // blanks at line ends
    EDIT_LINE_ENDS = 1 << 2,       // CR LF and LF
    EDIT_FINAL_NEWLINE = 1 << 3,   // the file ends without a newline; it still does
    EDIT_INDENTATION = 1 << 4,     // the same on all lines; added lines get it too
    EDIT_TOLERATED_COUNT = 5,
};

// How added lines end. Lines of an edit are compared with those of a file byte by byte only where they end as they are.
enum edit_ends { EDIT_ENDS_AS_THEY_ARE, EDIT_ENDS_LF, EDIT_ENDS_CRLF };

// One hunk: offsets into the diff.
struct edit_hunk {
    uint32_t header, body, end; // from header to body: its @@ line, if it has one
    uint32_t old_start, old_count;
    uint32_t new_start, new_count;
    bool by_content; // it has no line numbers
    bool at_end;     // it belongs at the end of the file
    bool changes;    // some line is added or removed
    bool crlf, lf;   // some line ends so
    bool has_mark;   // some line begins with a byte order mark
};

struct edit_hunks {
    const char *diff; // ends with a NUL; not owned
    uint32_t size;
    struct edit_hunk *items; // owned
    uint32_t count;
};

struct edit_report {
    uint32_t added, removed;  // lines
    uint32_t offset;          // largest distance of a hunk from where its @@ line says, in lines
    uint32_t fuzz;            // most lines of context left out at one end of a hunk
    enum edit_ends line_ends; // the file's, where the diff's were made the same
    unsigned tolerated;
    // Where it failed:
    uint32_t hunk;        // the number of the hunk in its file
    uint32_t line, other; // lines where it belongs, or where it fits and fits too
};

// Adds the hunks that begin at an offset, one right below the other, as far as each changes something and has as many
// lines as its @@ line says. 0, or -1 and *error.
int edit_read_hunks(struct edit_hunks *hunks, uint32_t at, struct error *error);

// Adds a hunk of all lines from hunk->body to the offset limit, whatever the counts in its @@ line. 1; 0: they are no
// lines of a hunk, or change nothing; -1 and *error.
int edit_add_hunk(struct edit_hunks *hunks, struct edit_hunk *hunk, uint32_t limit, struct error *error);

// Appends to out what count hunks from number first make of a file, and fills *report.
//
// A hunk is looked for at its line number, then at the nearest other place (of two as near, the later), then with one
// and two lines of context less at its ends. Hunks keep their order and never overlap. One with less context after than
// before belongs at the end of the file; one with less before, at line 1, at its beginning. A hunk without numbers, or
// one that fits nowhere so, is looked for by its lines alone, and is patch_ambiguous where two places fit. After an
// error out may hold a part of the file.
int edit_apply(const struct edit_hunks *hunks, uint32_t first, uint32_t count, const char *bytes, size_t size,
               struct buffer *out, struct edit_report *report, struct error *error);

#endif
