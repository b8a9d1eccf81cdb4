// SPDX-License-Identifier: Apache-2.0
// Anchors: the lines "@@ class B:" above a hunk without line numbers, each a line of the file below which the hunk
// stands. Several in a row narrow the place further. What belongs to an anchor is its block: the lines below it that
// are indented more.
#ifndef SBA_CORE_EDIT_ANCHOR_H
#define SBA_CORE_EDIT_ANCHOR_H

#include "core/edit/edit_place.h"

enum { EDIT_MAX_ANCHORS = 16 };

struct edit_anchors {
    struct edit_line lines[EDIT_MAX_ANCHORS]; // of the diff, without the blanks around them
    uint32_t count;
};

// Reads the @@ lines of a hunk. -1: there are too many.
int edit_anchors_read(struct edit_anchors *anchors, const char *diff, const struct edit_hunk *hunk);

// Finds the place of search->side below the anchors: in the block of the last one, else the nearest below.
// Levels looser than loosest are not tried. EDIT_NOWHERE: search->missing is the number of the anchor that the file
// lacks, or of all of them.
enum edit_found edit_anchors_find(struct edit_search *search, enum edit_level loosest, struct error *error);

#endif
