// SPDX-License-Identifier: Apache-2.0
// Names and dates in the headers of a diff. A line is given without its line end.
//
// Functions that return a name return an owned string, or NULL if the line has none or memory is out.
#ifndef SBA_CORE_PATCH_NAME_H
#define SBA_CORE_PATCH_NAME_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
