// SPDX-License-Identifier: Apache-2.0
// Finds where a hunk stands below its anchors, see edit_anchor.h.
#include "core/edit/edit_anchor.h"

#include "core/text/text.h"

#include <ctype.h>
#include <string.h>

static bool has_word(struct edit_line line)
{
    for (uint32_t i = 0; i < line.size; i++)
        if (isalnum((unsigned char)line.text[i]) || line.text[i] & 0x80)
            return true;
    return false;
}

// What a line "@@ class B:", "@@ class B: @@" or "@@ ... @@ class B:" names: the part that has words. Numbers are none.
static struct edit_line named(struct edit_line line)
{
    static const char mark[] = "@@";
    const char *end = line.text + line.size, *second;
    line = edit_trim((struct edit_line){.text = line.text + 2, .size = line.size - 2}, EDIT_INDENTED);
    second = memmem(line.text, line.size, mark, 2);
    if (!second)
        return line;
    struct edit_line first = {.text = line.text, .size = (uint32_t)(second - line.text)};
    first = edit_trim(first, EDIT_INDENTED);
    bool numbers = first.text[0] == '-' && first.size > 1 && isdigit((unsigned char)first.text[1]);
    if (has_word(first) && !numbers)
        return first;
    return edit_trim((struct edit_line){.text = second + 2, .size = (uint32_t)(end - second - 2)}, EDIT_INDENTED);
}

int edit_anchors_read(struct edit_anchors *anchors, const char *diff, const struct edit_hunk *hunk)
{
    const char *at = diff + hunk->header, *end = diff + hunk->body;
    anchors->count = 0;
    while (hunk->by_content && end - at > 2 && at[0] == '@' && at[1] == '@') {
        const char *stop = text_line_end(at, end);
        struct edit_line line = named((struct edit_line){.text = at, .size = (uint32_t)(stop - at)});
        at = stop < end ? stop + 1 : end;
        if (!has_word(line))
            continue;
        if (anchors->count == EDIT_MAX_ANCHORS)
            return -1;
        line.newline = true; // the file's line may have one, or none
        anchors->lines[anchors->count++] = line;
    }
    return 0;
}

// The last line of the block of a line: before the next one that is not indented more. -1: the interrupt.
static int64_t block_last(struct edit_search *search, uint32_t line, struct error *error)
{
    const uint32_t bytes = 64; // are looked at in the time in which lines are compared
    const struct edit_file *file = search->file;
    uint32_t indent = edit_indent(edit_line_at(file, line)), end = line + 1;
    for (; end < file->count; end++) {
        struct edit_line there = edit_line_at(file, end);
        if (edit_trim(there, EDIT_TRAILING).size && edit_indent(there) <= indent)
            break;
        search->work += 1 + there.size / bytes;
        if (edit_ask_for_interrupt(search, error) < 0)
            return -1;
    }
    return (int64_t)end - 1;
}

// The next line from *at on at which all anchors stand below each other; *at is where the last one does. Each anchor's
// place only ever moves down, so the file is gone through once for each.
static bool next_place(const struct edit_search *search, uint32_t places[], uint32_t *at)
{
    const struct edit_anchors *anchors = search->anchors;
    for (uint32_t i = 0; i < anchors->count; i++) {
        uint32_t from = i ? places[i - 1] + 1 : places[0];
        if (places[i] < from)
            places[i] = from;
        while (places[i] < search->file->count &&
               !edit_line_equal(edit_line_at(search->file, places[i]), anchors->lines[i], EDIT_INDENTED))
            places[i]++;
        if (places[i] >= search->file->count)
            return false;
    }
    *at = places[anchors->count - 1];
    return true;
}

// Notes a place that fits: EDIT_TWICE where it is another than the one before.
static enum edit_found note(struct edit_search *search, int64_t place, enum edit_found found)
{
    if (found == EDIT_NOWHERE)
        search->place = place;
    if (place == search->place)
        return EDIT_ONCE;
    search->other = place;
    return EDIT_TWICE;
}

// Looks below one anchor: in its block, or below it up to the end, where the nearest counts.
static enum edit_found find_below(struct edit_search *search, uint32_t anchor, bool in_block, enum edit_found found,
                                  struct error *error)
{
    int64_t end = (int64_t)search->file->count - search->side->count, place = anchor;
    int64_t last = in_block ? block_last(search, anchor, error) : end;
    if (in_block && last < 0)
        return EDIT_FAILED;
    if (!search->side->count) // its lines are only added
        return in_block && anchor + 1 >= search->floor ? note(search, anchor + 1, found) : found;
    if (search->hunk->at_end && place < end)
        place = end;
    if (place < search->floor)
        place = search->floor;
    for (; found != EDIT_TWICE && place <= last; place++) {
        enum edit_found next = edit_place_first(search, place, last, &place, error);
        if (next == EDIT_FAILED)
            return next;
        if (next == EDIT_NOWHERE || (next == EDIT_TWICE && found == EDIT_NOWHERE))
            return found;
        found = note(search, place, found); // also where too many may follow: then it is not the only one
        if (!in_block)
            break;
    }
    return found;
}

static enum edit_found find_at_level(struct edit_search *search, bool in_block, struct error *error)
{
    uint32_t places[EDIT_MAX_ANCHORS] = {0}, anchor;
    enum edit_found found = EDIT_NOWHERE, before;
    for (; (found == EDIT_NOWHERE || found == EDIT_ONCE) && next_place(search, places, &anchor); places[0]++) {
        before = found;
        if (in_block || !found || anchor > search->place)
            found = find_below(search, anchor, in_block, found, error);
        if (!in_block && found == before)
            break; // nor does it stand below a later one
    }
    return found;
}

enum edit_found edit_anchors_find(struct edit_search *search, enum edit_level loosest, struct error *error)
{
    uint32_t places[EDIT_MAX_ANCHORS] = {0}, anchor;
    enum edit_found found;
    search->head = search->tail = 0;
    for (search->level = EDIT_EXACT;; search->level++) {
        found = find_at_level(search, true, error);
        if (found == EDIT_NOWHERE)
            found = find_at_level(search, false, error);
        if (found != EDIT_NOWHERE || search->level == loosest)
            break;
    }
    search->missing = search->anchors->count;
    if (found == EDIT_NOWHERE && !next_place(search, places, &anchor))
        for (search->missing = 0; places[search->missing] < search->file->count; search->missing++)
            continue;
    return found;
}
