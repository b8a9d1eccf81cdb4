// SPDX-License-Identifier: Apache-2.0
// File name patterns, as a shell and .gitignore write them.
//
//   *       any characters of one name           [a-z] [!a-z]  one character (not) of the set
//   ?       one character                        {a,b}         either; may be nested
//   **      as a whole component: any directories    \x            x itself
//
// A pattern without a slash is matched against a file's name, one with a slash against its whole path; "./*.c" matches
// at the top alone. A leading dot is not special. Matching takes time proportional to pattern times path at most.
#ifndef SBA_CORE_GLOB_H
#define SBA_CORE_GLOB_H

#include "core/base/error.h"

#include <stdbool.h>

struct glob;

// What counts as a character: those of UTF-8, where a byte that is none counts as one; or each byte, as in git.
enum glob_unit { GLOB_CHARACTERS, GLOB_BYTES };

// Compiles a pattern. Errors: "invalid_glob" (malformed, more than 1,000 alternatives, or too many braces; the message
// has the reason), "out_of_memory".
struct glob *glob_compile(const char *pattern, enum glob_unit unit, struct error *error);

// Whether a relative path matches. It has no leading slash.
bool glob_match(const struct glob *glob, const char *path);

// NULL is allowed.
void glob_free(struct glob *glob);

#endif
