// SPDX-License-Identifier: Apache-2.0
// The places of a file where a side of an edit stands: all its lines, one after the other, equal at a level. Lines are
// numbered from 0 here.
#ifndef SBA_CORE_EDIT_PLACE_H
#define SBA_CORE_EDIT_PLACE_H

#include "core/edit/edit_lines.h"

struct edit_anchors; // edit_anchor.h

// The search for one edit. A place is the line where the side's first line would stand, in the file or outside.
struct edit_search {
    const struct edit_hunk *hunk;
    const struct edit_anchors *anchors; // NULL: there are none
    struct edit_file *file;
    const struct edit_body *body;
    const struct edit_side *side; // the one that is looked for
    int64_t guess;                // the place where it is looked for first
    uint32_t floor;               // the edit before ends here
    enum edit_level level;
    uint32_t work; // lines that were compared since the interrupt was asked for
    // Found:
    int64_t place, other;
    uint32_t head, tail; // lines left out at the side's ends
    uint32_t missing;    // where it stands nowhere: the anchor that the file lacks
};

// How the indentation of a place differs from an edit's on all lines: it has text more, or less, or size blanks of the
// edit stand for a tab.
struct edit_shift {
    enum { SHIFT_MORE, SHIFT_LESS, SHIFT_TABS } kind;
    const char *text;
    uint32_t size;
};

// False: it does not differ in one way on all lines.
bool edit_place_shift(const struct edit_search *search, int64_t place, struct edit_shift *shift);

// How often a side stands in a file. Of EDIT_TWICE the places are place and other. EDIT_FAILED: and *error.
enum edit_found { EDIT_FAILED = -1, EDIT_NOWHERE, EDIT_ONCE, EDIT_TWICE };

// After work (search->work) on which more follows. -1 and *error if the job must stop.
int edit_ask_for_interrupt(struct edit_search *search, struct error *error);

// Whether all lines but those left out stand at place, none of them above the floor.
bool edit_place_fits(const struct edit_search *search, int64_t place, uint32_t floor);

// Finds the place that is nearest to the guess, of two that are as near the later: search->place.
enum edit_found edit_place_nearest(struct edit_search *search, struct error *error);

// Finds the first place from first to last, whatever the floor, where the side stands: *place. EDIT_TWICE: it looks as
// if it stood at too many.
enum edit_found edit_place_first(struct edit_search *search, int64_t first, int64_t last, int64_t *place,
                                 struct error *error);

#endif
