// SPDX-License-Identifier: Apache-2.0
// Finds where in a file a side of an edit stands, see edit_lines.h.
#include "core/edit/edit_lines.h"

#include <errno.h>
#include <string.h>

// Whether all lines but those left out stand at place, none of them above the floor.
static bool fits(const struct edit_search *search, int64_t place)
{
    const struct edit_file *file = search->file;
    uint32_t end = search->side->count - search->tail;
    if (place + search->head < search->floor || place + end > file->count)
        return false;
    for (uint32_t i = search->head; i < end; i++)
        if (!edit_line_equal(edit_line_at(file, (uint32_t)(place + i)), search->side->lines[i], search->level))
            return false;
    return true;
}

// Finds the places of the side's line that is in the file least often, so that few have to be tried. 1; 0: the side has
// no lines; -1 and *error.
static int find_rarest(const struct edit_search *search, const uint32_t **places, uint32_t *count, uint32_t *line,
                       struct error *error)
{
    *count = UINT32_MAX;
    if (search->side->count && edit_index(search->file) < 0)
        return error_system(error, ENOMEM, "cannot place the edit");
    for (uint32_t i = search->head; i < search->side->count - search->tail; i++) {
        uint32_t found_count;
        const uint32_t *found = edit_places(search->file, search->side->lines[i], &found_count);
        if (found_count < *count) {
            *places = found;
            *count = found_count;
            *line = i;
        }
    }
    return search->side->count > 0;
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
static int find_anywhere(struct edit_search *search, struct error *error)
{
    const uint32_t *places;
    uint32_t count, line;
    int status = find_rarest(search, &places, &count, &line, error);
    if (status <= 0)
        return status;
    int64_t wanted = search->guess + line;
    uint32_t up = lower_bound(places, count, wanted), down = up;
    while (down || up < count) {
        bool later = up < count && (!down || places[up] - wanted <= wanted - places[down - 1]);
        search->place = (int64_t)places[later ? up++ : --down] - line;
        if (fits(search, search->place))
            return 1;
    }
    return 0;
}

static int find_at(struct edit_search *search, int64_t place)
{
    search->place = place;
    return fits(search, place);
}

// One attempt. fuzz lines of the longer context are left out, and as many of the shorter one that both have the same
// length. If the shorter one has fewer lines than that, the beginning or end of the file cut it off, and the hunk
// belongs there.
static int find_with_fuzz(struct edit_search *search, uint32_t fuzz, uint32_t start, struct error *error)
{
    const struct edit_side *side = search->side;
    uint32_t prefix = search->body->prefix, suffix = search->body->suffix, context = prefix > suffix ? prefix : suffix;
    int64_t head = (int64_t)fuzz + prefix - context, tail = (int64_t)fuzz + suffix - context;
    search->head = head > 0 ? (uint32_t)head : 0;
    search->tail = tail > 0 ? (uint32_t)tail : 0;
    if (fuzz > context || (fuzz && search->head + search->tail >= side->count))
        return 0;
    if (head < 0 && start <= 1)
        return (tail >= 0 || side->count == search->file->count) && find_at(search, 0);
    if (tail < 0)
        return find_at(search, (int64_t)search->file->count - side->count);
    return find_at(search, search->guess) ? 1 : find_anywhere(search, error);
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
            if (edit_trim_end(there).size && !is_shifted(there, search->side->lines[same], shift))
                break;
        }
        if (same == search->side->count)
            return kind != SHIFT_TABS || shift->size;
    }
    return false;
}

// Finds the only place from first to last, whatever the floor. 1, 0, 2: place and other, or -1.
static int find_only(struct edit_search *search, int64_t first, int64_t last, struct error *error)
{
    const uint32_t *places;
    uint32_t count, line, floor = search->floor;
    struct edit_shift shift;
    search->head = search->tail = 0;
    int found = 0, status = find_rarest(search, &places, &count, &line, error);
    if (status <= 0)
        return status;
    search->floor = 0;
    for (uint32_t i = lower_bound(places, count, first + line); found < 2 && i < count; i++) {
        int64_t place = (int64_t)places[i] - line;
        if (place > last)
            break;
        if (fits(search, place) && (search->level < EDIT_INDENTED || edit_find_shift(search, place, &shift)))
            *(found++ ? &search->other : &search->place) = place;
    }
    search->floor = floor;
    return found;
}

bool edit_find_new(const struct edit_search *search, int64_t *place)
{
    struct edit_search after = *search;
    const struct edit_hunk *hunk = search->hunk;
    struct error error = {0};
    after.side = &search->body->new;
    after.level = EDIT_EXACT;
    if (!after.side->count || (hunk->by_content && search->body->prefix == after.side->count))
        return false;
    int found = hunk->by_content ? find_only(&after, 0, search->file->count, &error)
                                 : find_with_fuzz(&after, 0, hunk->new_start, &error);
    error_clear(&error);
    *place = after.place;
    return found > 0;
}

int edit_find(struct edit_search *search, struct error *error)
{
    bool by_content = search->hunk->by_content;
    int64_t end = (int64_t)search->file->count - search->body->old.count, place;
    int status = 0;
    search->side = &search->body->old;
    search->level = EDIT_EXACT;
    if (by_content && !search->side->count) { // it can go to the end, if it says so, and into an empty file
        search->place = search->file->count;
        return search->hunk->at_end || !search->file->count;
    }
    for (uint32_t fuzz = 0; !by_content && !status && fuzz <= EDIT_MAX_FUZZ; fuzz++)
        status = find_with_fuzz(search, fuzz, search->hunk->old_start, error);
    if (status || (!by_content && edit_find_new(search, &place)))
        return status;
    search->level = by_content ? EDIT_EXACT : EDIT_TRAILING;
    while (!(status = find_only(search, search->hunk->at_end ? end : 0, end, error)) && search->level < EDIT_INDENTED)
        search->level++;
    if (status == 2 && search->level == EDIT_INDENTED && !by_content)
        return 0;
    bool is_there = status == 1 && by_content && edit_find_new(search, &place) && place == search->place;
    return status == 1 && (search->place < search->floor || is_there) ? 0 : status;
}

static uint32_t count_blanks(struct edit_line line)
{
    return line.size - edit_ends_cr(line) - edit_trim_end(line).size;
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
