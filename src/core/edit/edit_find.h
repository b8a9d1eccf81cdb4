// SPDX-License-Identifier: Apache-2.0
// Where in a file an edit stands. Lines are numbered from 0 here.
#ifndef SBA_CORE_EDIT_FIND_H
#define SBA_CORE_EDIT_FIND_H

#include "core/edit/edit_place.h"

// Finds the place of a hunk, whose file, body, anchors, guess and floor *search has: search->place, with its level,
// head and tail.
enum edit_found edit_find(struct edit_search *search, struct error *error);

// Finds where the new side stands already.
enum edit_found edit_find_new(const struct edit_search *search, int64_t *place, struct error *error);

// What was overlooked where the side was found.
unsigned edit_differences(const struct edit_search *search);

#endif
