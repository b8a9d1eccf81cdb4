// SPDX-License-Identifier: Apache-2.0
// Finds where in a file a side of a hunk fits, see patch_fit.h.
#include "core/base/interrupt.h"
#include "core/edit/patch_fit.h"

enum {
    CHECK_EVERY = 1 << 16,  // lines compared between checks of the deadline
    NEAREST_LINES = 200,    // of a hunk that fits nowhere
    NEAREST_PLACES = 16,    // tried for each of them
    NEAREST_WORK = 1 << 22, // lines compared in all
};

static bool line_fits(const struct patch_search *search, int64_t number, uint32_t i)
{
    const struct patch_image *image = search->image;
    const struct patch_hunk_line *line = search->side->lines[i];
    if (number < 0 || number >= image->count)
        return false;
    if (search->body->hashed && image->places && image->hashes[number] != line->hash)
        return false;
    struct patch_text there = patch_image_line(image, (uint32_t)number);
    return search->loose ? patch_text_equal_loosely(there, line->text) : patch_text_equal(there, line->text);
}

// Whether all lines but those left out stand at place, none of them above the floor.
static bool fits(const struct patch_search *search, int64_t place)
{
    uint32_t end = search->side->count - search->tail;
    if (place + search->head < search->floor || place + end > search->image->count)
        return false;
    for (uint32_t i = search->head; i < end; i++)
        if (!line_fits(search, place + i, i))
            return false;
    return true;
}

// Counts lines that were compared, and checks the deadline now and then. -1 and *error: time is up.
static int spend(uint32_t *work, uint32_t lines, struct error *error)
{
    *work += lines;
    if (*work <= CHECK_EVERY)
        return 0;
    *work = 0;
    return interrupt_check(error);
}

static int index_both(struct patch_search *search, struct error *error)
{
    struct patch_body *body = search->body;
    if (patch_image_index(search->image) < 0)
        return error_set(error, "out_of_memory", 0, "not enough memory for the file");
    for (uint32_t i = 0; !body->hashed && i < body->count; i++)
        body->lines[i].hash = patch_text_hash(body->lines[i].text);
    body->hashed = true;
    return 0;
}

// The lines of the file that may equal the side's line i, by number.
static const uint32_t *places_of(const struct patch_search *search, uint32_t i, uint32_t *count)
{
    const struct patch_image *image = search->image;
    uint32_t bucket = search->side->lines[i]->hash & image->bucket_mask;
    *count = image->buckets[bucket + 1] - image->buckets[bucket];
    return image->places + image->buckets[bucket];
}

// The line of the side that is in the file least often, so that few places have to be tried.
static uint32_t rarest_line(const struct patch_search *search)
{
    uint32_t best = search->head, least = UINT32_MAX, count;
    for (uint32_t i = search->head; i < search->side->count - search->tail; i++) {
        places_of(search, i, &count);
        if (count >= least)
            continue;
        least = count;
        best = i;
    }
    return best;
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

// Takes the nearer of the next larger and the next smaller number; the larger one if both are as near.
static uint32_t take_nearest(const uint32_t *numbers, uint32_t count, int64_t wanted, uint32_t *down, uint32_t *up)
{
    if (*up < count && (!*down || numbers[*up] - wanted <= wanted - numbers[*down - 1]))
        return numbers[(*up)++];
    return numbers[--*down];
}

// Tries every place, the nearest to the guess first.
static int find_anywhere(struct patch_search *search, struct error *error)
{
    uint32_t count, work = 0;
    if (!search->side->count)
        return 0;
    if (index_both(search, error) < 0)
        return -1;
    uint32_t line = rarest_line(search);
    const uint32_t *places = places_of(search, line, &count);
    uint32_t up = lower_bound(places, count, search->guess + line), down = up;
    while (down || up < count) {
        search->place = (int64_t)take_nearest(places, count, search->guess + line, &down, &up) - line;
        if (fits(search, search->place))
            return 1;
        if (spend(&work, search->side->count, error) < 0)
            return -1;
    }
    return 0;
}

static int find_at(struct patch_search *search, int64_t place)
{
    search->place = place;
    return fits(search, place);
}

// One attempt. fuzz lines of the longer context are left out, and as many of the shorter one that both have the same
// length. If the shorter one has fewer lines than that, the beginning or end of the file cut it off, and the hunk
// belongs there.
static int find_with_fuzz(struct patch_search *search, uint32_t fuzz, struct error *error)
{
    const struct patch_side *side = search->side;
    uint32_t context = side->prefix > side->suffix ? side->prefix : side->suffix;
    int64_t head = (int64_t)fuzz + side->prefix - context, tail = (int64_t)fuzz + side->suffix - context;
    search->head = head > 0 ? (uint32_t)head : 0;
    search->tail = tail > 0 ? (uint32_t)tail : 0;
    if (fuzz && search->head + search->tail >= side->count)
        return 0;
    if (head < 0 && search->start <= 1)
        return (tail >= 0 || side->count == search->image->count) && find_at(search, 0);
    if (tail < 0)
        return find_at(search, (int64_t)search->image->count - side->count);
    if (find_at(search, search->guess))
        return 1;
    return find_anywhere(search, error);
}

int patch_find(struct patch_search *search, uint32_t fuzz, struct error *error)
{
    uint32_t context = search->side->prefix > search->side->suffix ? search->side->prefix : search->side->suffix;
    for (uint32_t i = 0; i <= fuzz && i <= context; i++) {
        int status = find_with_fuzz(search, i, error);
        if (status)
            return status;
    }
    return 0;
}

int patch_find_only(struct patch_search *search, int64_t first, int64_t last, int64_t *other, struct error *error)
{
    uint32_t count, work = 0, floor = search->floor;
    int found = 0;
    search->head = search->tail = 0;
    if (!search->side->count)
        return 0;
    if (index_both(search, error) < 0)
        return -1;
    uint32_t line = rarest_line(search);
    const uint32_t *places = places_of(search, line, &count);
    search->floor = 0;
    for (uint32_t i = lower_bound(places, count, first + line); found >= 0 && found < 2 && i < count; i++) {
        int64_t place = (int64_t)places[i] - line;
        if (place > last)
            break;
        if (fits(search, place))
            *(found++ ? other : &search->place) = place;
        if (spend(&work, search->side->count, error) < 0)
            found = -1;
    }
    search->floor = floor;
    return found;
}

uint32_t patch_count_matching(const struct patch_search *search, int64_t place, uint32_t *first)
{
    uint32_t matching = 0;
    *first = search->side->count;
    for (uint32_t i = 0; i < search->side->count; i++) {
        bool same = line_fits(search, place + i, i);
        matching += same;
        if (!same && *first == search->side->count)
            *first = i;
    }
    return matching;
}

int64_t patch_find_nearest(struct patch_search *search, uint32_t *matching)
{
    struct error error = {0};
    int64_t best = -1;
    uint64_t work = 0;
    *matching = 0;
    if (index_both(search, &error) < 0) {
        error_clear(&error);
        return -1;
    }
    for (uint32_t i = 0; i < search->side->count && i < NEAREST_LINES; i++) {
        uint32_t count, first;
        const uint32_t *places = places_of(search, i, &count);
        uint32_t up = lower_bound(places, count, search->guess + i), down = up;
        for (int tries = 0; tries < NEAREST_PLACES && work < NEAREST_WORK && (down || up < count); tries++) {
            work += search->side->count;
            int64_t place = (int64_t)take_nearest(places, count, search->guess + i, &down, &up) - i;
            uint32_t found = place < 0 ? 0 : patch_count_matching(search, place, &first);
            if (found <= *matching)
                continue;
            *matching = found;
            best = place;
        }
    }
    return best;
}
