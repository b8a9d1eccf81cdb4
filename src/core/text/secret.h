// SPDX-License-Identifier: Apache-2.0
// Finds secrets in text from outside: the output of commands, answers of servers, files.
//
// A secret is found as it is, percent-encoded, escaped as in a JSON string, and in base64 at any of its three
// alignments (standard or URL alphabet, wrapped or not, also percent-encoded or escaped). Any character may be escaped
// or not, because tools differ in which ones they escape. More than SECRET_BLANKS_MAX blanks between two characters of
// base64 hide it. The time is linear in the size of the text.
//
// If the caller cut the text, a part of a secret at that end is redacted as well, if it has at least 4 characters.
//
// The secrets are global, and for one thread. A secret is never forgotten.
#ifndef SBA_CORE_SECRET_H
#define SBA_CORE_SECRET_H

#include "core/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SECRET_SHORTEST = 6, // a shorter one cannot be told from parts of ordinary words
    SECRET_BLANKS_MAX = 256,
};

// The ends at which a text was cut.
enum { SECRET_CUT_START = 1, SECRET_CUT_END = 2 };

// Adds a secret. Returns 1; 0 if it has fewer than SECRET_SHORTEST bytes; -1 if memory is out.
int secret_add(const char *bytes, size_t size);

// Whether any secret is known. If none is, there is nothing to redact.
bool secret_is_known(void);

// Appends the text to `clean`, with "[redacted]" in place of each secret. cuts: a set of SECRET_CUT_*. Returns 1; 0 if
// the text holds no secret: then nothing is appended; -1 if memory is out.
int secret_redact_copy(const char *text, size_t size, unsigned cuts, struct buffer *clean);

// The same where more of the text will come. *size becomes that of the part in which no secret or character is open,
// and only that part is appended, whether it holds a secret or not. *is_cut: the start of the text was cut; then, that
// of what is left: the end of a line may begin the base64 of a secret. Returns 0, or -1 if memory is out.
int secret_redact_settled(const char *text, size_t *size, bool *is_cut, struct buffer *clean);

// Redacts the buffer's own text and makes it UTF-8, as text_repair does. A character cut at the end is dropped.
// Returns 0, or -1 if memory is out.
int secret_redact(struct buffer *text, unsigned cuts);

// Appends a text as secret_redact leaves it.
int secret_append(const char *text, size_t size, unsigned cuts, struct buffer *out);

#endif
