// SPDX-License-Identifier: Apache-2.0
// Splits a file and a hunk into lines, see patch_fit.h.
#include "core/edit/patch_fit.h"
#include "core/edit/patch_parse.h"
#include "core/text/text.h"

#include <stdlib.h>
#include <string.h>

int patch_image_split(struct patch_image *image, const char *bytes, size_t size)
{
    const char *at = bytes, *end = bytes + size;
    *image = (struct patch_image){.bytes = bytes};
    for (;; image->count++) {
        uint32_t *starts = array_grow(image->starts, image->count, sizeof *starts);
        if (!starts)
            return -1;
        image->starts = starts;
        starts[image->count] = (uint32_t)(at - bytes);
        if (at == end)
            return 0;
        const char *newline = text_find_byte(at, (size_t)(end - at), '\n');
        if (newline && newline > at && newline[-1] == '\r')
            image->crlf++;
        else if (newline)
            image->lf++;
        at = newline ? newline + 1 : end;
    }
}

void patch_image_free(struct patch_image *image)
{
    free(image->starts);
    free(image->hashes);
    free(image->buckets);
    free(image->places);
    *image = (struct patch_image){0};
}

static struct patch_text make_text(const char *text, size_t size, bool newline, enum patch_ends ends)
{
    if (ends != PATCH_ENDS_EXACT && newline && size && text[size - 1] == '\r')
        size--;
    return (struct patch_text){text, (uint32_t)size, newline};
}

struct patch_text patch_image_line(const struct patch_image *image, uint32_t number)
{
    const char *text = image->bytes + image->starts[number], *end = image->bytes + image->starts[number + 1];
    bool newline = end[-1] == '\n';
    return make_text(text, (size_t)(end - text) - newline, newline, image->ends);
}

bool patch_text_equal(struct patch_text one, struct patch_text other)
{
    return one.size == other.size && one.newline == other.newline && memcmp(one.text, other.text, one.size) == 0;
}

// The size without blanks at the end, and without a CR there, which *cr tells.
static uint32_t trimmed_size(struct patch_text text, bool *cr)
{
    uint32_t size = text.size;
    *cr = size && text.text[size - 1] == '\r';
    size -= *cr;
    while (size && (text.text[size - 1] == ' ' || text.text[size - 1] == '\t'))
        size--;
    return size;
}

bool patch_text_equal_loosely(struct patch_text there, struct patch_text wanted)
{
    bool there_cr, wanted_cr;
    uint32_t size = trimmed_size(there, &there_cr);
    return size == trimmed_size(wanted, &wanted_cr) && there_cr == wanted_cr && wanted.size <= there.size &&
           (wanted.newline || !there.newline) && memcmp(there.text, wanted.text, size) == 0;
}

uint32_t patch_text_hash(struct patch_text text)
{
    bool cr;
    uint32_t size = trimmed_size(text, &cr);
    uint64_t hash = size, word;
    size_t i = 0;
    for (; i + sizeof word <= size; i += sizeof word) {
        memcpy(&word, text.text + i, sizeof word);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    for (word = 0; i < size; i++)
        word = word << 8 | (unsigned char)text.text[i];
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(hash >> 32);
}

static uint32_t mask_for(uint32_t count)
{
    uint32_t mask = 15;
    while (mask < count)
        mask = mask * 2 + 1;
    return mask;
}

// Sorts line numbers by bucket (counting sort).
static void sort_places(struct patch_image *image)
{
    uint32_t *buckets = image->buckets, mask = image->bucket_mask;
    for (uint32_t i = 0; i < image->count; i++)
        buckets[(image->hashes[i] & mask) + 1]++;
    for (uint32_t i = 0; i <= mask; i++)
        buckets[i + 1] += buckets[i];
    for (uint32_t i = image->count; i-- > 0;)
        image->places[--buckets[(image->hashes[i] & mask) + 1]] = i;
    // buckets[i + 1] now has the start of bucket i: move all of them by one.
    memmove(buckets, buckets + 1, mask * sizeof *buckets + sizeof *buckets);
    buckets[mask + 1] = image->count;
}

int patch_image_index(struct patch_image *image)
{
    if (image->places)
        return 0;
    image->bucket_mask = mask_for(image->count);
    image->hashes = malloc((image->count + 1) * sizeof *image->hashes);
    image->places = malloc((image->count + 1) * sizeof *image->places);
    image->buckets = calloc((size_t)image->bucket_mask + 2, sizeof *image->buckets);
    if (!image->hashes || !image->places || !image->buckets)
        return -1;
    for (uint32_t i = 0; i < image->count; i++)
        image->hashes[i] = patch_text_hash(patch_image_line(image, i));
    sort_places(image);
    return 0;
}

static struct patch_hunk_line *add_line(struct patch_body *body)
{
    struct patch_hunk_line *lines = array_grow(body->lines, body->count, sizeof *lines);
    if (!lines)
        return NULL;
    body->lines = lines;
    return &lines[body->count++];
}

// If the diff itself has CR LF, the CR before "\\ No newline" belongs to the diff, not to the file.
static void end_without_newline(struct patch_text *text, struct patch_line marker)
{
    text->newline = false;
    if (text->size && text->text[text->size - 1] == '\r' && marker.text[marker.size - 1] == '\r')
        text->size--;
}

static int read_lines(struct patch_body *body, struct patch_reader reader, enum patch_ends ends)
{
    struct patch_line line;
    body->count = 0;
    body->bare = false;
    while (patch_take(&reader, &line)) {
        bool bare = !line.size || line.text[0] == '\r'; // context that lost its blank
        if (!bare && line.text[0] == '\\') {
            if (body->count)
                end_without_newline(&body->lines[body->count - 1].text, line);
            continue;
        }
        struct patch_hunk_line *added = add_line(body);
        if (!added)
            return -1;
        body->bare |= bare;
        added->kind = bare ? ' ' : line.text[0];
        added->text = make_text(line.text + !bare, line.size - !bare, true, ends);
    }
    return 0;
}

static void make_side(struct patch_body *body, struct patch_side *side, char left_out, struct patch_hunk_line **room)
{
    *side = (struct patch_side){.lines = room};
    for (uint32_t i = 0; i < body->count; i++)
        if (body->lines[i].kind != left_out)
            side->lines[side->count++] = &body->lines[i];
    while (side->prefix < body->count && body->lines[side->prefix].kind == ' ')
        side->prefix++;
    while (side->suffix < body->count && body->lines[body->count - 1 - side->suffix].kind == ' ')
        side->suffix++;
}

int patch_body_read(struct patch_body *body, const struct patch *patch, const struct patch_hunk *hunk,
                    enum patch_ends ends)
{
    struct patch_reader reader = {patch->diff + hunk->body, patch->diff + hunk->body_end, 1};
    if (read_lines(body, reader, ends) < 0)
        return -1;
    struct patch_hunk_line **pointers = realloc(body->pointers, (2 * (size_t)body->count + 1) * sizeof *pointers);
    if (!pointers)
        return -1;
    body->pointers = pointers;
    make_side(body, &body->old, '+', body->pointers);
    make_side(body, &body->new, '-', body->pointers + body->count);
    body->hashed = false;
    return 0;
}

void patch_body_free(struct patch_body *body)
{
    free(body->lines);
    free(body->pointers);
    *body = (struct patch_body){0};
}
