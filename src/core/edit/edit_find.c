// SPDX-License-Identifier: Apache-2.0
// Finds where in a file an edit stands, see edit_find.h.
#include "core/edit/edit_find.h"

#include "core/edit/edit_anchor.h"

static enum edit_found find_at(struct edit_search *search, int64_t place)
{
    search->place = place;
    return edit_place_fits(search, place, search->floor) ? EDIT_ONCE : EDIT_NOWHERE;
}

// One attempt. fuzz lines of the longer context are left out, and as many of the shorter one that both have the same
// length. If the shorter one has fewer lines than that, the beginning or end of the file cut it off, and the hunk
// belongs there. With 3 lines before and 1 after, fuzz 0 leaves out none, but tail is -2: it belongs at the end; fuzz 2
// leaves out 2 before and 0 after, which is any place.
static enum edit_found find_with_fuzz(struct edit_search *search, uint32_t fuzz, uint32_t start, struct error *error)
{
    const struct edit_side *side = search->side;
    uint32_t prefix = search->body->prefix, suffix = search->body->suffix, context = prefix > suffix ? prefix : suffix;
    int64_t head = (int64_t)fuzz + prefix - context, tail = (int64_t)fuzz + suffix - context;
    search->head = head > 0 ? (uint32_t)head : 0;
    search->tail = tail > 0 ? (uint32_t)tail : 0;
    if (fuzz > context || (fuzz && search->head + search->tail >= side->count))
        return EDIT_NOWHERE;
    if (head < 0 && start <= 1)
        return tail >= 0 || side->count == search->file->count ? find_at(search, 0) : EDIT_NOWHERE;
    if (tail < 0)
        return find_at(search, (int64_t)search->file->count - side->count);
    return find_at(search, search->guess) == EDIT_ONCE ? EDIT_ONCE : edit_place_nearest(search, error);
}

// Finds the only place from first to last, whatever the floor. EDIT_NOWHERE also where there may be too many to tell.
static enum edit_found find_only(struct edit_search *search, int64_t first, int64_t last, struct error *error)
{
    enum edit_found found = edit_place_first(search, first, last, &search->place, error);
    if (found == EDIT_ONCE) {
        found = edit_place_first(search, search->place + 1, last, &search->other, error);
        if (found == EDIT_NOWHERE)
            return EDIT_ONCE;
        if (found == EDIT_ONCE)
            return EDIT_TWICE;
    }
    return found == EDIT_FAILED ? EDIT_FAILED : EDIT_NOWHERE;
}

enum edit_found edit_find_new(const struct edit_search *search, int64_t *place, struct error *error)
{
    struct edit_search after = *search;
    const struct edit_hunk *hunk = search->hunk;
    after.side = &search->body->new;
    after.level = EDIT_EXACT;
    if (!after.side->count || (hunk->by_content && search->body->prefix == after.side->count))
        return EDIT_NOWHERE;
    enum edit_found found;
    if (search->anchors)
        found = edit_anchors_find(&after, after.level, error);
    else if (hunk->by_content)
        found = find_only(&after, 0, search->file->count, error);
    else
        found = find_with_fuzz(&after, 0, hunk->new_start, error);
    *place = after.place;
    return found;
}

// By the lines alone, from the level on at which the search stands. An edit never goes above the one before it.
static enum edit_found find_by_content(struct edit_search *search, struct error *error)
{
    int64_t end = (int64_t)search->file->count - search->side->count, first = search->hunk->at_end ? end : 0;
    enum edit_found found;
    while ((found = find_only(search, first, end, error)) == EDIT_NOWHERE && search->level < EDIT_INDENTED)
        search->level++;
    return found == EDIT_ONCE && search->place < search->floor ? EDIT_NOWHERE : found;
}

// An edit without line numbers.
static enum edit_found find_unnumbered(struct edit_search *search, struct error *error)
{
    int64_t place;
    if (!search->anchors && !search->side->count) { // it can go to the end, if it says so, and into an empty file
        search->place = search->file->count;
        return search->hunk->at_end || !search->file->count ? EDIT_ONCE : EDIT_NOWHERE;
    }
    enum edit_found found =
        search->anchors ? edit_anchors_find(search, EDIT_INDENTED, error) : find_by_content(search, error);
    enum edit_found found_new = found == EDIT_ONCE ? edit_find_new(search, &place, error) : EDIT_NOWHERE;
    if (found_new == EDIT_FAILED)
        return EDIT_FAILED;
    return found_new != EDIT_NOWHERE && place == search->place ? EDIT_NOWHERE : found; // it is done already
}

static enum edit_found find_numbered(struct edit_search *search, struct error *error)
{
    int64_t place;
    enum edit_found found = EDIT_NOWHERE;
    for (uint32_t fuzz = 0; found == EDIT_NOWHERE && fuzz <= EDIT_MAX_FUZZ; fuzz++)
        found = find_with_fuzz(search, fuzz, search->hunk->old_start, error);
    if (found != EDIT_NOWHERE)
        return found;
    enum edit_found found_new = edit_find_new(search, &place, error);
    if (found_new != EDIT_NOWHERE)
        return found_new == EDIT_FAILED ? EDIT_FAILED : EDIT_NOWHERE;
    search->level = EDIT_TRAILING;
    found = find_by_content(search, error);
    return found == EDIT_TWICE && search->level == EDIT_INDENTED ? EDIT_NOWHERE : found;
}

enum edit_found edit_find(struct edit_search *search, struct error *error)
{
    search->side = &search->body->old;
    search->level = EDIT_EXACT;
    return search->hunk->by_content ? find_unnumbered(search, error) : find_numbered(search, error);
}

static uint32_t count_blanks(struct edit_line line)
{
    return line.size - edit_ends_cr(line) - edit_trim(line, EDIT_TRAILING).size;
}

unsigned edit_differences(const struct edit_search *search)
{
    unsigned found = 0;
    for (uint32_t i = 0; search->level > EDIT_EXACT && i < search->side->count; i++) {
        struct edit_line there = edit_line_at(search->file, (uint32_t)(search->place + i));
        struct edit_line wanted = search->side->lines[i];
        found |= count_blanks(there) != count_blanks(wanted) ? EDIT_TRAILING_BLANKS : 0u;
        found |= edit_ends_cr(there) != edit_ends_cr(wanted) ? EDIT_LINE_ENDS : 0u;
        found |= there.newline != wanted.newline ? EDIT_FINAL_NEWLINE : 0u;
    }
    struct edit_shift shift;
    bool shifted = search->level == EDIT_INDENTED && edit_place_shift(search, search->place, &shift) && shift.size;
    return found | (shifted ? EDIT_INDENTATION : 0u);
}
