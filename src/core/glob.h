// SPDX-License-Identifier: Apache-2.0
// File name patterns, as a shell and .gitignore write them.
//
//   *       any characters of one name           [a-z] [!a-z]  one character (not) of the set
//   ?       one character                        {a,b}         either; may be nested
//   **      as a whole component: any directories    \x            x itself
//
// A pattern without a slash is matched against a file's name, one with a slash against its whole path. Nothing is
// special about a leading dot. Names are taken as UTF-8; a byte that is none counts as a character. Matching takes no
// longer than pattern times path.
#ifndef SBA_CORE_GLOB_H
#define SBA_CORE_GLOB_H

#include "core/error.h"

#include <stdbool.h>

struct glob;

// Reads a pattern. Errors: "invalid_glob" (malformed, message with the reason; more than 1,000 alternatives),
// "out_of_memory".
struct glob *glob_compile(const char *pattern, struct error *error);

// Whether a relative path without leading slash matches.
bool glob_match(const struct glob *glob, const char *path);

// NULL is allowed.
void glob_free(struct glob *glob);

#endif
