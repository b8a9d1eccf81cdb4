// SPDX-License-Identifier: Apache-2.0
// A file and an edit as lines, see edit_lines.h; and the hunks of a diff as they are read.
#include "core/edit/edit_lines.h"
#include "core/base/cleanup.h"
#include "core/text/text.h"

#include <stdlib.h>
#include <string.h>

const char edit_mark[] = "\xEF\xBB\xBF";

int edit_split(struct edit_file *file, const char *bytes, size_t size, bool keeps_mark)
{
    bool marked = keeps_mark && size >= EDIT_MARK && memcmp(bytes, edit_mark, EDIT_MARK) == 0;
    const char *at = bytes + (marked ? EDIT_MARK : 0), *end = bytes + size;
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

struct edit_line edit_trim_end(struct edit_line line)
{
    while (line.size && memchr(" \t\r", line.text[line.size - 1], 3))
        line.size--;
    return line;
}

struct edit_line edit_trim(struct edit_line line, enum edit_level level)
{
    if (level > EDIT_EXACT)
        line = edit_trim_end(line);
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

// What a line of a hunk is: '\\' for "\\ No newline", 0 for none. A blank line is context that lost its blank.
static char line_kind(const char *at, const char *stop)
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
        line.kind = line_kind(at, stop);
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

// What is known of a hunk while its lines are counted.
struct counts {
    uint32_t old, new;
    bool old_ends, new_ends; // the side's last line was read: it has no newline
    char last;               // kind of the line before; 0: there is none, or it is empty, or it is the marker itself
};

// Counts a line. False: it does not belong to a hunk.
static bool count_line(const char *at, const char *stop, struct counts *counts, struct edit_hunk *hunk)
{
    char kind = line_kind(at, stop);
    if (kind == '\\') {
        counts->old_ends |= counts->last != '+';
        counts->new_ends |= counts->last != '-';
        bool belongs = counts->last != 0; // an empty line cannot lack its newline, and none can lack it twice
        counts->last = 0;
        return belongs;
    }
    if (!kind || (kind != '+' && counts->old_ends) || (kind != '-' && counts->new_ends))
        return false;
    counts->old += kind != '+';
    counts->new += kind != '-';
    bool crlf = stop > at && stop[-1] == '\r';
    hunk->has_mark |= stop - at > EDIT_MARK && memcmp(at + 1, edit_mark, EDIT_MARK) == 0;
    counts->last = stop - at > 1 + crlf ? kind : 0;
    hunk->changes |= kind != ' ';
    hunk->crlf |= crlf;
    hunk->lf |= !crlf;
    return true;
}

static bool count_lines(const char *diff, struct edit_hunk *hunk, uint32_t limit, bool counted)
{
    struct counts counts = {0};
    const char *at = diff + hunk->body, *end = diff + limit, *stop;
    for (; at < end; at = stop + (stop < end)) {
        if (counted && *at != '\\' && counts.old == hunk->old_count && counts.new == hunk->new_count)
            break;
        stop = text_line_end(at, end);
        if (!count_line(at, stop, &counts, hunk))
            return false;
        if (counted && (counts.old > hunk->old_count || counts.new > hunk->new_count))
            return false;
    }
    if (counted && (counts.old < hunk->old_count || counts.new < hunk->new_count))
        return false;
    hunk->end = (uint32_t)(at - diff);
    hunk->old_count = counts.old;
    hunk->new_count = counts.new;
    return true;
}

static int add_hunk(struct edit_hunks *hunks, const struct edit_hunk *hunk, struct error *error)
{
    if (hunks->count == EDIT_MAX_HUNKS)
        return error_set(error, "too_large", 0, "the diff has more than %d hunks", EDIT_MAX_HUNKS);
    struct edit_hunk *items = array_grow(hunks->items, hunks->count, sizeof *items);
    if (!items)
        return error_memory(error, "cannot place the edit");
    hunks->items = items;
    items[hunks->count++] = *hunk;
    return 1;
}

// Reads a number of at most nine digits: no file has more lines. NULL: there is none.
static const char *read_number(const char *at, uint32_t *number)
{
    const char *digits = at;
    for (*number = 0; *at >= '0' && *at <= '9' && at - digits < 9; at++)
        *number = *number * 10 + (uint32_t)(*at - '0');
    return at == digits ? NULL : at;
}

static const char *read_range(const char *at, uint32_t *start, uint32_t *count)
{
    *count = 1;
    at = read_number(at, start);
    return at && *at == ',' ? read_number(at + 1, count) : at;
}

// Reads the line at hunk->header. False: it is not of the form "@@ -1,3 +1,4 @@".
static bool read_numbers(const struct edit_hunks *hunks, struct edit_hunk *hunk)
{
    const char *at = hunks->diff + hunk->header, *end = hunks->diff + hunks->size;
    if (strncmp(at, "@@ -", 4) != 0 || !(at = read_range(at + 4, &hunk->old_start, &hunk->old_count)) ||
        strncmp(at, " +", 2) != 0 || !(at = read_range(at + 2, &hunk->new_start, &hunk->new_count)) ||
        strncmp(at, " @@", 3) != 0)
        return false;
    at = text_line_end(at, end);
    hunk->body = (uint32_t)(at + (at < end) - hunks->diff);
    return true;
}

int edit_read_hunks(struct edit_hunks *hunks, uint32_t at, struct error *error)
{
    for (;;) {
        struct edit_hunk hunk = {.header = at};
        if (!read_numbers(hunks, &hunk) || !count_lines(hunks->diff, &hunk, hunks->size, true) || !hunk.changes)
            return 0;
        if (add_hunk(hunks, &hunk, error) < 0)
            return -1;
        at = hunk.end;
    }
}

int edit_add_hunk(struct edit_hunks *hunks, struct edit_hunk *hunk, uint32_t limit, struct error *error)
{
    hunk->by_content = hunk->by_content || !read_numbers(hunks, hunk);
    return count_lines(hunks->diff, hunk, limit, false) && hunk->changes ? add_hunk(hunks, hunk, error) : 0;
}
