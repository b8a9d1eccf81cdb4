// SPDX-License-Identifier: Apache-2.0
// The hunks of a diff as they are read, see edit.h.
#include "core/edit/edit_lines.h"
#include "core/text/text.h"

#include <string.h>

// What is known of a hunk while its lines are counted.
struct counts {
    uint32_t old, new;
    bool old_ends, new_ends; // the side's last line was read: it has no newline
    char last;               // kind of the line before; 0: there is none, or it is empty, or it is the marker itself
    bool last_is_cr;         // of it a carriage return is all, which belongs to its end where all lines end so
};

// Counts a line. False: it does not belong to a hunk.
static bool count_line(const char *at, const char *stop, struct counts *counts, struct edit_hunk *hunk)
{
    char kind = edit_line_kind(at, stop);
    bool crlf = stop > at && stop[-1] == '\r';
    if (kind == '\\') {
        counts->old_ends |= counts->last != '+';
        counts->new_ends |= counts->last != '-';
        // An empty line cannot lack its newline, and none can lack it twice.
        bool belongs = counts->last && !(counts->last_is_cr && crlf);
        hunk->lf |= counts->last_is_cr && !crlf; // its own end says whether that return is a line end
        counts->last = 0;
        return belongs;
    }
    if (!kind || (kind != '+' && counts->old_ends) || (kind != '-' && counts->new_ends))
        return false;
    counts->old += kind != '+';
    counts->new += kind != '-';
    hunk->has_mark |= stop > at && text_mark(at + 1, (size_t)(stop - at - 1)) > 0;
    counts->last = stop - at > 1 ? kind : 0;
    counts->last_is_cr = crlf && stop - at == 2;
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
