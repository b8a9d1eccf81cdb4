// SPDX-License-Identifier: Apache-2.0
// Finds where in a file a side of an edit stands, see edit_find.h.
#include "core/edit/edit_find.h"

#include "core/base/interrupt.h"
#include "core/edit/edit_anchor.h"

#include <string.h>

// Whether all lines but those left out stand at place, none of them above the floor.
static bool fits(const struct edit_search *search, int64_t place, uint32_t floor)
{
    const struct edit_file *file = search->file;
    uint32_t end = search->side->count - search->tail;
    if (place + search->head < floor || place + end > file->count)
        return false;
    for (uint32_t i = search->head; i < end; i++)
        if (!edit_line_equal(edit_line_at(file, (uint32_t)(place + i)), search->side->lines[i], search->level))
            return false;
    return true;
}

// Where a side may stand: where that of its lines is which the file has least often.
struct candidates {
    const uint32_t *lines; // of the file, ascending
    uint32_t count;
    uint32_t number; // of the line, in the side
    uint32_t hash;   // of all lines but those left out
    uint32_t factor; // of as many lines
};

// EDIT_NOWHERE: the side has no lines.
static enum edit_found find_candidates(const struct edit_search *search, struct candidates *found, struct error *error)
{
    const struct edit_side *side = search->side;
    uint32_t end = side->count - search->tail;
    *found = (struct candidates){.count = UINT32_MAX, .factor = edit_hash_factor(end - search->head)};
    if (!side->count)
        return EDIT_NOWHERE;
    if (edit_index(search->file) < 0 || edit_sum(search->file, search->level) < 0)
        return error_memory(error, "cannot place the edit");
    for (uint32_t i = search->head; i < end; i++) {
        uint32_t count;
        const uint32_t *lines = edit_places(search->file, side->lines[i], &count);
        found->hash = edit_add_hash(found->hash, side->lines[i], search->level);
        if (count < found->count) {
            found->lines = lines;
            found->count = count;
            found->number = i;
        }
    }
    return EDIT_ONCE;
}

// Whether all lines but those left out stand at place. The hashes tell in one step about nearly every place where they
// do not, however many lines of it are the same.
static bool try(struct edit_search *search, const struct candidates *candidates, int64_t place, uint32_t floor)
{
    const uint32_t *sums = search->file->sums[search->level];
    int64_t first = place + search->head, end = place + search->side->count - search->tail;
    search->work++;
    if (first < 0 || end > search->file->count || sums[end] - sums[first] * candidates->factor != candidates->hash)
        return false;
    search->work += (uint32_t)(end - first);
    return fits(search, place, floor);
}

int edit_ask_for_interrupt(struct edit_search *search, struct error *error)
{
    const uint32_t lines = 10000; // compared in less than a millisecond
    if (search->work < lines)
        return 0;
    search->work = 0;
    return interrupt_check(error);
}

// The first of sorted numbers that is at least wanted.
static uint32_t lower_bound(const uint32_t *numbers, uint32_t count, int64_t wanted)
{
    uint32_t low = 0;
    while (low < count) {
        uint32_t middle = low + (count - low) / 2;
        if (numbers[middle] < wanted)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

// Tries every place, the nearest to the guess first, of two that are as near the later.
static enum edit_found find_nearest(struct edit_search *search, struct error *error)
{
    struct candidates candidates;
    enum edit_found status = find_candidates(search, &candidates, error);
    if (status != EDIT_ONCE)
        return status;
    const uint32_t *lines = candidates.lines;
    int64_t wanted = search->guess + candidates.number;
    uint32_t up = lower_bound(lines, candidates.count, wanted), down = up;
    while (down || up < candidates.count) {
        bool later = up < candidates.count && (!down || lines[up] - wanted <= wanted - lines[down - 1]);
        search->place = (int64_t)lines[later ? up++ : --down] - candidates.number;
        if (try(search, &candidates, search->place, search->floor))
            return EDIT_ONCE;
        if (edit_ask_for_interrupt(search, error) < 0)
            return EDIT_FAILED;
    }
    return EDIT_NOWHERE;
}

static enum edit_found find_at(struct edit_search *search, int64_t place)
{
    search->place = place;
    return fits(search, place, search->floor) ? EDIT_ONCE : EDIT_NOWHERE;
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
    return find_at(search, search->guess) == EDIT_ONCE ? EDIT_ONCE : find_nearest(search, error);
}

// Whether the indentation of a line differs from the edit's like that of the lines before, which the shift tells.
static bool is_shifted(struct edit_line there, struct edit_line wanted, struct edit_shift *shift)
{
    struct edit_line more = shift->kind == SHIFT_MORE ? there : wanted;
    struct edit_line less = shift->kind == SHIFT_MORE ? wanted : there;
    uint32_t deep = edit_indent(more), shallow = edit_indent(less);
    if (shift->kind == SHIFT_TABS) {
        shift->size = shallow && !shift->size ? deep / shallow : shift->size;
        return deep == shallow * shift->size && !memchr(more.text, '\t', deep) && !memchr(less.text, ' ', shallow);
    }
    if (!shift->text) {
        shift->text = more.text;
        shift->size = deep > shallow ? deep - shallow : 0;
    }
    return deep == shift->size + shallow && memcmp(more.text, shift->text, shift->size) == 0 &&
           memcmp(more.text + shift->size, less.text, shallow) == 0;
}

bool edit_find_shift(const struct edit_search *search, int64_t place, struct edit_shift *shift)
{
    for (int kind = SHIFT_MORE; kind <= SHIFT_TABS; kind++) {
        uint32_t same = 0;
        *shift = (struct edit_shift){.kind = kind};
        for (; same < search->side->count; same++) {
            struct edit_line there = edit_line_at(search->file, (uint32_t)(place + same));
            if (edit_trim(there, EDIT_TRAILING).size && !is_shifted(there, search->side->lines[same], shift))
                break;
        }
        if (same == search->side->count)
            return kind != SHIFT_TABS || shift->size;
    }
    return false;
}

// Hashes do not tell how indentation differs: where so many places differ in that alone that they overlap each other
// many times, none is taken.
enum edit_found edit_find_first(struct edit_search *search, int64_t first, int64_t last, int64_t *place,
                                struct error *error)
{
    struct candidates candidates;
    struct edit_shift shift;
    search->head = search->tail = 0;
    enum edit_found status = find_candidates(search, &candidates, error);
    if (status != EDIT_ONCE)
        return status;
    uint64_t compared = 0, most = 8 * ((uint64_t)search->file->count + search->side->count);
    search->work += search->side->count;
    uint32_t i = lower_bound(candidates.lines, candidates.count, first + candidates.number);
    for (; i < candidates.count; i++) {
        *place = (int64_t)candidates.lines[i] - candidates.number;
        if (*place > last)
            break;
        if (edit_ask_for_interrupt(search, error) < 0)
            return EDIT_FAILED;
        if (!try(search, &candidates, *place, 0))
            continue;
        if (search->level == EDIT_INDENTED && (compared += search->side->count) > most)
            return EDIT_TWICE;
        if (search->level < EDIT_INDENTED || edit_find_shift(search, *place, &shift))
            return EDIT_ONCE;
    }
    return EDIT_NOWHERE;
}

// Finds the only place from first to last, whatever the floor. EDIT_NOWHERE also where there may be too many to tell.
static enum edit_found find_only(struct edit_search *search, int64_t first, int64_t last, struct error *error)
{
    enum edit_found found = edit_find_first(search, first, last, &search->place, error);
    if (found == EDIT_ONCE) {
        found = edit_find_first(search, search->place + 1, last, &search->other, error);
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
        found = edit_find_anchored(&after, after.level, error);
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
        search->anchors ? edit_find_anchored(search, EDIT_INDENTED, error) : find_by_content(search, error);
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
    bool shifted = search->level == EDIT_INDENTED && edit_find_shift(search, search->place, &shift) && shift.size;
    return found | (shifted ? EDIT_INDENTATION : 0u);
}
