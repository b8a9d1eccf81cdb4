// SPDX-License-Identifier: Apache-2.0
// Takes secrets out of text: of everything that leaves the runner.
//
// A secret is found however it is written: as it is; percent-encoded or with \u00XX, whole or in part, also when that
// was encoded again; with backslashes before its characters, or as in a JSON Pointer; as base64 of a text that it is
// anywhere in, in the standard or the URL alphabet, padded, wrapped or not. One that is cut, at an end of the text, at
// an ellipsis or at a note like "[... 5 bytes left out ...]", is found by what is left of it: 8 characters, or half of
// a short secret but never fewer than 6, backslashes not counted.
//
// Process-wide, for one thread, like the environment that the secrets come from. Nothing is ever forgotten.
#ifndef SBA_CORE_SECRET_H
#define SBA_CORE_SECRET_H

#include "core/buffer.h"

#include <stdbool.h>
#include <stddef.h>

// A shorter one is also a part of ordinary words: it cannot be told from them.
enum { SECRET_SHORTEST = 6 };

// Makes a secret known. 1; 0 where it has fewer than SECRET_SHORTEST bytes that are no backslash; -1 when memory is
// out.
int secret_add(const char *bytes, size_t size);

// Whether any is known. Where none is, there is nothing to redact.
bool secret_is_known(void);

// Appends the bytes to out with "[redacted]" for each secret and returns 1; 0, and nothing appended, where the bytes
// hold none; -1 when memory is out.
int secret_redact(const char *bytes, size_t size, struct buffer *out);

#endif
