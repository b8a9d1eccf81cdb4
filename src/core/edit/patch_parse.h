// SPDX-License-Identifier: Apache-2.0
// What the files that read a diff share, and nobody else: patch.c, patch_reader.c, patch_header.c, patch_hunk.c and
// patch_begin.c.
#ifndef SBA_CORE_PATCH_PARSE_H
#define SBA_CORE_PATCH_PARSE_H

#include "core/edit/patch.h"

struct patch_line {
    const char *text; // without its newline
    size_t size;
};

struct patch_reader {
    const char *at; // the next line
    const char *end;
    uint32_t line; // its number
};

// Gives the next line; false at the end. patch_header_line leaves out a CR before the newline.
bool patch_peek(const struct patch_reader *reader, struct patch_line *line);
bool patch_header_line(const struct patch_reader *reader, struct patch_line *line);

// Gives the next line and moves past it.
bool patch_take(struct patch_reader *reader, struct patch_line *line);

// Moves past the next line. There is one.
void patch_advance(struct patch_reader *reader);

// Moves past lines that are empty or blank.
void patch_pass_blank(struct patch_reader *reader);

bool patch_starts(struct patch_line line, const char *prefix);

// Whether the next line can belong to a hunk: ' ', '+', '-'. Headers and the signature of a mail do not count.
bool patch_at_body(const struct patch_reader *reader);

// Whether "--- " and "+++ " are next.
bool patch_at_names(const struct patch_reader *reader);

// Whether the next line ends a file's part of a diff: the next file, a mail's signature or head, a commit, a code
// fence.
bool patch_at_separator(const struct patch_reader *reader);

// Fills error with invalid_patch, "line N of the diff: " and the message. Returns -1.
int patch_invalid(const struct patch_reader *reader, struct error *error, const char *message);

// Adds an empty file or hunk. It moves when the next one is added. NULL and *error: there are too many, or memory is
// out.
struct patch_file *patch_add_file(struct patch *patch, struct error *error);
struct patch_hunk *patch_add_hunk(struct patch *patch, struct error *error);

// Names and dates in the headers of a diff. A line is given without its line end. Functions that return a name return
// an owned string, or NULL if the line has none or memory is out.

// The name after "rename from " and the like: quoted, or all of the line.
char *patch_name_whole(const char *text, size_t size);

// The name after "--- " or "+++ ": quoted, or what stands before a date or a tab.
char *patch_name_dated(const char *text, size_t size);

// Whether such a line ends with the date that stands for an absent file: 1970-01-01 00:00:00 UTC.
bool patch_name_is_epoch(const char *text, size_t size);

// The two names after "diff --git ". Both are NULL if they cannot be told apart.
void patch_name_pair(const char *text, size_t size, char **old_name, char **new_name);

// Whether two names as written are the same, but for their first directory.
bool patch_name_same(const char *one, const char *other);

// Whether a name as written is the plain name, or the plain name below some directories.
bool patch_name_agrees(const char *written, const char *plain);

// Reads "diff --git" and the lines that extend it, as far as the first hunk.
int patch_read_git_header(struct patch_reader *reader, struct patch_file *file, struct error *error);

// Whether git's lines for a file are next without "diff --git" before them: both names of a rename or copy, or modes
// right above "---" and "+++".
bool patch_at_extensions(const struct patch_reader *reader);
int patch_read_bare_git_header(struct patch_reader *reader, struct patch_file *file, struct error *error);

// Reads "---" and "+++".
int patch_read_names(struct patch_reader *reader, struct patch_file *file, struct error *error);

// Fills error with binary_patch. Returns -1.
int patch_refuse_binary(const struct patch_reader *reader, struct error *error);

// Reads the hunk whose @@ line is next. If its counts do not fit its body, the body is counted; if the body's end
// cannot be told, the diff is invalid_patch.
int patch_read_hunk(struct patch_reader *reader, const char *diff, struct patch_hunk *hunk, struct error *error);

// Whether the next line begins a hunk without line numbers: "@@", and maybe words or the line of a function.
bool patch_at_bare_hunk(const struct patch_reader *reader);

// Reads a hunk that is to be found by its lines: its @@ lines, if it has any, and its body. begin: only "@@" and "*** "
// at the start of a line end the body, as in the form of "*** Begin Patch".
int patch_read_bare_hunk(struct patch_reader *reader, const char *diff, bool begin, struct patch_hunk *hunk,
                         struct error *error);

// Whether a patch of the form that language models are taught is next: "*** Begin Patch" and a line for a file.
bool patch_at_begin(const struct patch_reader *reader);

// Reads it up to "*** End Patch". Names have no prefix. Hunks are found by their lines.
int patch_read_begin(struct patch_reader *reader, struct patch *patch, struct error *error);

#endif
