// SPDX-License-Identifier: Apache-2.0
// A file and an edit as lines, see edit_lines.h.
#include "core/edit/edit_lines.h"

#include "core/base/cleanup.h"
#include "core/text/text.h"

#include <stdlib.h>
#include <string.h>

int edit_split(struct edit_file *file, const char *bytes, size_t size, bool keeps_mark)
{
    const char *at = bytes + (keeps_mark ? text_mark(bytes, size) : 0), *end = bytes + size;
    *file = (struct edit_file){.bytes = bytes};
    for (;; file->count++) {
        uint32_t *starts = array_grow(file->starts, file->count, sizeof *starts);
        if (!starts)
            return -1;
        file->starts = starts;
        starts[file->count] = (uint32_t)(at - bytes);
        if (at == end)
            return 0;
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline && newline > at && newline[-1] == '\r')
            file->crlf++;
        else if (newline)
            file->lf++;
        at = newline ? newline + 1 : end;
    }
}

void edit_drop_index(struct edit_file *file)
{
    free(file->buckets);
    free(file->places);
    file->buckets = file->places = NULL;
    for (int level = 0; level < EDIT_LEVELS; level++) {
        free(file->sums[level]);
        file->sums[level] = NULL;
    }
}

void edit_file_free(struct edit_file *file)
{
    edit_drop_index(file);
    free(file->starts);
}

static struct edit_line make_line(const char *text, const char *end, bool newline, enum edit_ends ends)
{
    if (ends != EDIT_ENDS_AS_THEY_ARE && newline && end > text && end[-1] == '\r')
        end--;
    return (struct edit_line){.text = text, .size = (uint32_t)(end - text), .newline = newline};
}

struct edit_line edit_line_at(const struct edit_file *file, uint32_t number)
{
    const char *text = file->bytes + file->starts[number], *end = file->bytes + file->starts[number + 1];
    bool newline = end[-1] == '\n';
    return make_line(text, end - newline, newline, file->ends);
}

uint32_t edit_indent(struct edit_line line)
{
    uint32_t size = 0;
    while (size < line.size && (line.text[size] == ' ' || line.text[size] == '\t'))
        size++;
    return size;
}

struct edit_line edit_trim(struct edit_line line, enum edit_level level)
{
    while (level > EDIT_EXACT && line.size && memchr(" \t\r", line.text[line.size - 1], 3))
        line.size--;
    uint32_t indent = level == EDIT_INDENTED ? edit_indent(line) : 0;
    line.text += indent;
    line.size -= indent;
    return line;
}

bool edit_line_equal(struct edit_line there, struct edit_line wanted, enum edit_level level)
{
    if (level == EDIT_EXACT ? there.newline != wanted.newline : there.newline && !wanted.newline)
        return false;
    there = edit_trim(there, level);
    wanted = edit_trim(wanted, level);
    return there.size == wanted.size && memcmp(there.text, wanted.text, wanted.size) == 0;
}

// The same for lines that are equal at the level or at one below it (FNV-1a).
static uint32_t hash_line(struct edit_line line, enum edit_level level)
{
    uint32_t hash = 2166136261u;
    line = edit_trim(line, level);
    for (uint32_t i = 0; i < line.size; i++)
        hash = (hash ^ (unsigned char)line.text[i]) * 16777619u;
    return hash;
}

enum { FACTOR = 0x01000193 };

uint32_t edit_add_hash(uint32_t hash, struct edit_line line, enum edit_level level)
{
    return hash * FACTOR + hash_line(line, level);
}

uint32_t edit_hash_factor(uint32_t count)
{
    uint32_t factor = 1;
    for (uint32_t square = FACTOR; count; count >>= 1, square *= square)
        factor *= count & 1 ? square : 1;
    return factor;
}

int edit_sum(struct edit_file *file, enum edit_level level)
{
    uint32_t *sums = file->sums[level];
    if (sums)
        return 0;
    if (!(sums = malloc(((size_t)file->count + 1) * sizeof *sums)))
        return -1;
    sums[0] = 0;
    for (uint32_t i = 0; i < file->count; i++)
        sums[i + 1] = edit_add_hash(sums[i], edit_line_at(file, i), level);
    file->sums[level] = sums;
    return 0;
}

// Sorts line numbers by bucket (counting sort).
static void sort_places(struct edit_file *file, const uint32_t *hashes)
{
    uint32_t *buckets = file->buckets, mask = file->bucket_mask;
    for (uint32_t i = 0; i < file->count; i++)
        buckets[(hashes[i] & mask) + 1]++;
    for (uint32_t i = 0; i <= mask; i++)
        buckets[i + 1] += buckets[i];
    for (uint32_t i = file->count; i-- > 0;)
        file->places[--buckets[(hashes[i] & mask) + 1]] = i;
    // buckets[i + 1] now has the start of bucket i: move all of them by one.
    memmove(buckets, buckets + 1, mask * sizeof *buckets + sizeof *buckets);
    buckets[mask + 1] = file->count;
}

int edit_index(struct edit_file *file)
{
    if (file->places)
        return 0;
    file->bucket_mask = 15;
    while (file->bucket_mask < file->count)
        file->bucket_mask = file->bucket_mask * 2 + 1;
    cleanup_free uint32_t *hashes = malloc((file->count + 1) * sizeof *hashes);
    file->buckets = calloc((size_t)file->bucket_mask + 2, sizeof *file->buckets);
    if (!hashes || !file->buckets || !(file->places = malloc((file->count + 1) * sizeof *file->places)))
        return -1;
    for (uint32_t i = 0; i < file->count; i++)
        hashes[i] = hash_line(edit_line_at(file, i), EDIT_INDENTED);
    sort_places(file, hashes);
    return 0;
}

const uint32_t *edit_places(const struct edit_file *file, struct edit_line line, uint32_t *count)
{
    uint32_t bucket = hash_line(line, EDIT_INDENTED) & file->bucket_mask;
    *count = file->buckets[bucket + 1] - file->buckets[bucket];
    return file->places + file->buckets[bucket];
}

static int add_line(struct edit_side *side, struct edit_line line)
{
    struct edit_line *lines = array_grow(side->lines, side->count, sizeof *lines);
    if (!lines)
        return -1;
    side->lines = lines;
    lines[side->count++] = line;
    return 0;
}

static int make_sides(struct edit_body *body)
{
    const struct edit_line *lines = body->all.lines, *end = lines + body->all.count;
    body->old.count = body->new.count = body->prefix = body->suffix = 0;
    for (const struct edit_line *line = lines; line < end; line++) {
        body->suffix = line->kind == ' ' ? body->suffix + 1 : 0;
        body->prefix += body->suffix == line - lines + 1;
        if ((line->kind != '+' && add_line(&body->old, *line) < 0) ||
            (line->kind != '-' && add_line(&body->new, *line) < 0))
            return -1;
    }
    return 0;
}

// Takes the newline from the line above "\\ No newline". If the diff has CR LF, so the line's CR is not the file's.
static void end_without_newline(struct edit_line *line, const char *marker_end)
{
    line->newline = false;
    if (line->size && line->text[line->size - 1] == '\r' && marker_end[-1] == '\r')
        line->size--;
}

char edit_line_kind(const char *at, const char *stop)
{
    if (at == stop || *at == '\r')
        return ' ';
    if (*at == '\\')
        return stop - at > 1 && at[1] == ' ' ? '\\' : 0;
    return *at == ' ' || *at == '-' || *at == '+' ? *at : 0;
}

int edit_body_read(struct edit_body *body, const char *text, const char *end, enum edit_ends ends)
{
    body->all.count = 0;
    body->bare = false;
    for (const char *at = text, *stop; at < end; at = stop + 1) {
        stop = text_line_end(at, end);
        bool bare = at == stop || *at == '\r';
        struct edit_line line = make_line(at + !bare, stop, true, ends);
        line.kind = edit_line_kind(at, stop);
        if (line.kind == '\\' && body->all.count)
            end_without_newline(&body->all.lines[body->all.count - 1], stop);
        else if (line.kind != '\\' && add_line(&body->all, line) < 0)
            return -1;
        body->bare |= bare;
    }
    return make_sides(body);
}

void edit_body_free(struct edit_body *body)
{
    free(body->all.lines);
    free(body->old.lines);
    free(body->new.lines);
}
