// SPDX-License-Identifier: Apache-2.0
// Where in a file a side of a hunk fits.
#ifndef SBA_CORE_PATCH_FIND_H
#define SBA_CORE_PATCH_FIND_H

#include "core/patch_image.h"

// A place in question: where the side's first line would stand. It may be below 0 or past the end.
struct patch_search {
    struct patch_image *image;
    struct patch_body *body;
    const struct patch_side *side;
    int64_t guess;
    uint32_t start; // of the side as its @@ line says: 0 and 1 may belong to the beginning
    uint32_t floor; // nothing above this line is touched: it is behind the last hunk
    // Found:
    int64_t place;
    uint32_t head, tail; // lines left out at the side's ends
};

// Finds the place with at most fuzz lines of context left out. 1 found, 0 not, -1 and *error: no memory, time is up.
int patch_find(struct patch_search *search, uint32_t fuzz, struct error *error);

// Finds the only place from first to last, whatever the floor. 1 found; 0 not; 2 there are more, *other is one; -1 and
// *error: time is up, no memory. A side without lines is nowhere.
int patch_find_only(struct patch_search *search, int64_t first, int64_t last, int64_t *other, struct error *error);

// The place at which most of the side's lines are found, *matching says how many; -1: none is anywhere, or no memory.
// It tries a bounded number of places and compares a bounded number of lines.
int64_t patch_find_nearest(struct patch_search *search, uint32_t *matching);

// How many of the side's lines stand where they would at place; *first is the first that does not.
uint32_t patch_count_matching(const struct patch_search *search, int64_t place, uint32_t *first);

#endif
