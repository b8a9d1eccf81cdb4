// SPDX-License-Identifier: Apache-2.0
// Finds secrets in text that comes from outside: what a command prints, a server answers, or a file holds.
//
// A secret is found as it is, percent-encoded, escaped as in a JSON string, and in base64 at any of its three
// alignments (standard or URL alphabet, wrapped or not, in percent-encoded or JSON text too). Any character may be
// escaped or not: tools differ in which ones they escape. The time is linear in the size of the text.
//
// Where the caller cut the text, a part of a secret that the cut left at that end is redacted as well, if it has at
// least 4 characters.
//
// Process-wide and for one thread, like the environment that the secrets come from. A secret is never forgotten.
#ifndef SBA_CORE_SECRET_H
#define SBA_CORE_SECRET_H

#include "core/buffer.h"

#include <stdbool.h>
#include <stddef.h>

// A shorter secret cannot be told from parts of ordinary words.
enum { SECRET_SHORTEST = 6 };

// The ends at which a text was cut.
enum { SECRET_CUT_START = 1, SECRET_CUT_END = 2 };

// Makes a secret known. Returns 1; 0 if it has fewer than SECRET_SHORTEST bytes; -1 if memory is out.
int secret_add(const char *bytes, size_t size);

// Whether any secret is known. If none is, there is nothing to redact.
bool secret_is_known(void);

// Replaces each secret in text by "[redacted]". cuts: a set of SECRET_CUT_*. Returns 1; 0 if the text holds no secret;
// -1 if memory is out (the text is then unchanged).
int secret_redact(struct buffer *text, unsigned cuts);

// How many of the first bytes can be redacted by themselves, because no secret that may go on after the text reaches
// into them: for text that comes in pieces. 0 where memory is out. *cut: they may end with a line that ends with up to
// three characters of a secret in base64, as any word may; what follows is then to be redacted as cut at its start.
size_t secret_settled(const char *text, size_t size, bool *cut);

#endif
