// SPDX-License-Identifier: Apache-2.0
// What a JSON value of a file holds, without its long texts in memory: journals and results may be of any size. Errors
// as in error.h.
#ifndef SBA_CORE_JSON_SKIM_H
#define SBA_CORE_JSON_SKIM_H

#include "core/base/buffer.h"
#include "core/base/error.h"

#include <stdint.h>

// A member's value that was left out of the text. Its name there is between quotes, as it is written.
struct json_span {
    size_t name, name_size; // in the text
    int64_t offset, size;   // in the file
};

struct json_skim {
    struct buffer text;      // JSON: the value, with null for each member that is left out
    struct json_span *spans; // those
    size_t count;
    int64_t offset, end; // of the value in the file
};

// Reads the value that begins at an offset or after blanks there: JSON as RFC 8259 has it, in UTF-8. The members of the
// outermost object that are longer than `most` bytes, and the one named `always` (or NULL), are left out of the text.
// Errors: "end" where there are but blanks, "incomplete" where the file ends within it, "invalid_json", "too_deep".
int json_skim(int fd, int64_t at, size_t most, const char *always, struct json_skim *skim, struct error *error);
void json_skim_free(struct json_skim *skim);

#endif
