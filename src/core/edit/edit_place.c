// SPDX-License-Identifier: Apache-2.0
// The places of a file where a side of an edit stands, see edit_place.h.
#include "core/edit/edit_place.h"

#include "core/base/interrupt.h"

#include <string.h>

bool edit_place_fits(const struct edit_search *search, int64_t place, uint32_t floor)
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
static bool stands_at(struct edit_search *search, const struct candidates *candidates, int64_t place, uint32_t floor)
{
    const uint32_t *sums = search->file->sums[search->level];
    int64_t first = place + search->head, end = place + search->side->count - search->tail;
    search->work++;
    if (first < 0 || end > search->file->count || sums[end] - sums[first] * candidates->factor != candidates->hash)
        return false;
    search->work += (uint32_t)(end - first);
    return edit_place_fits(search, place, floor);
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

enum edit_found edit_place_nearest(struct edit_search *search, struct error *error)
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
        if (stands_at(search, &candidates, search->place, search->floor))
            return EDIT_ONCE;
        if (edit_ask_for_interrupt(search, error) < 0)
            return EDIT_FAILED;
    }
    return EDIT_NOWHERE;
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

bool edit_place_shift(const struct edit_search *search, int64_t place, struct edit_shift *shift)
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
enum edit_found edit_place_first(struct edit_search *search, int64_t first, int64_t last, int64_t *place,
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
        if (!stands_at(search, &candidates, *place, 0))
            continue;
        if (search->level == EDIT_INDENTED && (compared += search->side->count) > most)
            return EDIT_TWICE;
        if (search->level < EDIT_INDENTED || edit_place_shift(search, *place, &shift))
            return EDIT_ONCE;
    }
    return EDIT_NOWHERE;
}
