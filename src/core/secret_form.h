// SPDX-License-Identifier: Apache-2.0
// One way to write a secret, and how much of it stands at a place of a text. For secret.c.
#ifndef SBA_CORE_SECRET_FORM_H
#define SBA_CORE_SECRET_FORM_H

#include <stdbool.h>
#include <stddef.h>

struct secret_form {
    unsigned char *bytes; // owned; without backslashes, which may stand before any character
    size_t size;
    size_t telling; // so many bytes at an end of a text are the secret, cut
    bool base64;
    bool verbatim; // its % are no escapes
};

// What a place of a text holds of a form.
struct secret_match {
    size_t end;   // where it ends
    size_t count; // of the form's bytes
    bool whole;   // up to the form's last; else the text ended, or an ellipsis says that it was cut
};

// The length of the ellipsis at text, three dots or the character; 0: there is none.
size_t secret_ellipsis(const char *text, size_t size);

// Whether the form from its byte `from` on stands at text[start], up to the end of the form or of the text, or to an
// ellipsis.
bool secret_form_matches(const struct secret_form *form, size_t from, const char *text, size_t size, size_t start,
                         struct secret_match *match);

// Adds the characters with which the form begins where they are not escaped.
void secret_form_firsts(const struct secret_form *form, bool firsts[256]);

// Whether text, of size > 0, can begin with one of firsts, escaped or not. Sorts out most of what is escaped.
bool secret_may_begin(const bool firsts[256], const char *text, size_t size);

typedef void secret_mark_pair(unsigned char first, unsigned char second, void *context);

// Calls mark for each pair of bytes with which the form's byte `at` can begin in a text.
void secret_form_pairs(const struct secret_form *form, size_t at, secret_mark_pair *mark, void *context);

#endif
