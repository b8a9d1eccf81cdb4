// SPDX-License-Identifier: Apache-2.0
// The lines of a diff one after the other, and what they look like.
#ifndef SBA_CORE_PATCH_READER_H
#define SBA_CORE_PATCH_READER_H

#include "core/error.h"
#include "core/patch.h"

struct patch_line {
    const char *text; // without its newline
    size_t size;
};

struct patch_reader {
    const char *at; // the next line
    const char *end;
    uint32_t line; // its number
};

// The next line; false at the end. patch_header_line leaves out a CR before the newline.
bool patch_peek(const struct patch_reader *reader, struct patch_line *line);
bool patch_header_line(const struct patch_reader *reader, struct patch_line *line);

// The next line, and past it.
bool patch_take(struct patch_reader *reader, struct patch_line *line);

// Goes past the next line. There is one.
void patch_advance(struct patch_reader *reader);

// Goes past lines that are empty or blank.
void patch_pass_blank(struct patch_reader *reader);

bool patch_starts(struct patch_line line, const char *prefix);

// Whether the next line can belong to a hunk: ' ', '+', '-'. Neither headers nor a mail's signature count.
bool patch_at_body(const struct patch_reader *reader);

// Whether "--- " and "+++ " are next.
bool patch_at_names(const struct patch_reader *reader);

// Whether what comes next ends a file's part of a diff: the next file, a mail's signature or head, a commit, a code
// fence.
bool patch_at_separator(const struct patch_reader *reader);

// Fills error with invalid_patch, "line N of the diff: " and the message. Returns -1.
int patch_invalid(const struct patch_reader *reader, struct error *error, const char *message);

#endif
