// SPDX-License-Identifier: Apache-2.0
// Reads one hunk of a diff, see patch_parse.h.
#include "core/edit/patch_parse.h"

#include <string.h>

static const uint32_t NUMBER_LIMIT = (uint32_t)1 << 31;

struct counts {
    uint32_t old, new;
    bool changes;            // a line is added or removed
    bool crlf, lf;           // a line ends so
    bool old_ends, new_ends; // the side's last line was read: it has no newline
    char last;               // kind of the line before; 0: there is none, or it is empty
};

// Reads a number at *at, at most NUMBER_LIMIT. False: there is none. *absurd becomes true if it is larger.
static bool read_number(const char **at, const char *end, uint32_t *number, bool *absurd)
{
    uint64_t value = 0;
    const char *start = *at;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
        if (value <= NUMBER_LIMIT)
            value = value * 10 + (uint64_t)(**at - '0');
    *absurd |= value > NUMBER_LIMIT;
    *number = (uint32_t)value;
    return *at > start;
}

static bool read_text(const char **at, const char *end, const char *text)
{
    size_t size = strlen(text);
    if ((size_t)(end - *at) < size || memcmp(*at, text, size) != 0)
        return false;
    *at += size;
    return true;
}

// "12,3", or "12" for one line.
static bool read_range(const char **at, const char *end, uint32_t *start, uint32_t *count, bool *absurd)
{
    *count = 1;
    return read_number(at, end, start, absurd) && (!read_text(at, end, ",") || read_number(at, end, count, absurd));
}

static int read_header(struct patch_reader *reader, struct patch_hunk *hunk, struct error *error)
{
    struct patch_line line;
    bool absurd = false;
    patch_header_line(reader, &line);
    const char *at = line.text, *end = line.text + line.size;
    bool good = read_text(&at, end, "@@ -") && read_range(&at, end, &hunk->old_start, &hunk->old_count, &absurd) &&
                read_text(&at, end, " +") && read_range(&at, end, &hunk->new_start, &hunk->new_count, &absurd) &&
                read_text(&at, end, " @@");
    if (absurd)
        return patch_invalid(reader, error, "a number after '@@' is larger than any file");
    if (patch_starts(line, "@@@"))
        return patch_invalid(reader, error, "a combined diff (of a merge) is not a unified diff");
    if (!good)
        return patch_invalid(reader, error, "a hunk begins with '@@ -LINE,COUNT +LINE,COUNT @@'");
    hunk->header_size = (uint32_t)line.size;
    return 0;
}

static bool is_no_newline(struct patch_line line)
{
    return patch_starts(line, "\\ ");
}

// Counts "\\ No newline at end of file". The line before it, which cannot be empty, is the last of its side.
static bool count_marker(struct counts *counts)
{
    counts->old_ends |= counts->last != '+';
    counts->new_ends |= counts->last != '-';
    return counts->last != 0;
}

// Counts a line of a body. False: it does not belong to one. An empty line is context that lost its blank.
static bool count_line(struct patch_line line, struct counts *counts)
{
    char kind = !line.size || line.text[0] == '\r' ? ' ' : line.text[0];
    if (is_no_newline(line))
        return count_marker(counts);
    if (kind != ' ' && kind != '-' && kind != '+')
        return false;
    if ((kind != '+' && counts->old_ends) || (kind != '-' && counts->new_ends))
        return false;
    counts->old += kind != '+';
    counts->new += kind != '-';
    counts->changes |= kind != ' ';
    bool crlf = line.size && line.text[line.size - 1] == '\r';
    counts->crlf |= crlf;
    counts->lf |= !crlf;
    counts->last = line.size > 1 ? kind : 0;
    return true;
}

// Whether lines of a body follow, blank lines between or not.
static bool more_follows(struct patch_reader reader)
{
    struct patch_line line;
    while (patch_header_line(&reader, &line) && !line.size)
        patch_advance(&reader);
    return patch_at_body(&reader);
}

// Reads a body of as many lines as the counts say. False: it has fewer lines, or more.
static bool read_counted(struct patch_reader *reader, const struct patch_hunk *hunk, struct counts *counts)
{
    struct patch_line line;
    while (counts->old < hunk->old_count || counts->new < hunk->new_count)
        if (!patch_take(reader, &line) || !count_line(line, counts) || counts->old > hunk->old_count ||
            counts->new > hunk->new_count)
            return false;
    if (patch_peek(reader, &line) && is_no_newline(line)) {
        if (!count_line(line, counts))
            return false;
        patch_advance(reader);
    }
    return !more_follows(*reader);
}

// Whether a body can go on here. In the form of "*** Begin Patch" only its own lines decide.
static bool is_open(const struct patch_reader *reader, bool begin)
{
    return begin || (!patch_at_names(reader) && !patch_at_separator(reader));
}

// Reads a body as far as its lines look like one. Blank lines at its end do not belong to it.
static void read_all(struct patch_reader *reader, bool begin, struct counts *counts)
{
    struct patch_line line;
    struct patch_reader last = *reader;
    struct counts kept = {0};
    while (is_open(reader, begin) && patch_peek(reader, &line) && count_line(line, counts)) {
        bool blank = patch_header_line(reader, &line) && !line.size;
        patch_advance(reader);
        if (blank)
            continue;
        last = *reader;
        kept = *counts;
    }
    *reader = last;
    *counts = kept;
}

// Whether a body can end here: before the next hunk or file, a blank line, or the end.
static bool ends_well(const struct patch_reader *reader)
{
    struct patch_line line;
    return !patch_header_line(reader, &line) || !line.size || patch_starts(line, "@@") || patch_at_separator(reader);
}

static int not_ended(const struct patch_reader *reader, struct error *error)
{
    return patch_invalid(reader, error, "neither a line of the hunk (' ', '+', '-') nor its end; the diff is damaged");
}

// Ends the hunk, whose body goes from start to the offset end.
static int end_hunk(struct patch_hunk *hunk, const struct counts *counts, const struct patch_reader *start,
                    uint32_t end, struct error *error)
{
    if (!counts->changes)
        return patch_invalid(start, error, "the hunk above changes nothing");
    hunk->body_end = end;
    hunk->crlf = counts->crlf;
    hunk->lf = counts->lf;
    return 0;
}

int patch_read_hunk(struct patch_reader *reader, const char *diff, struct patch_hunk *hunk, struct error *error)
{
    struct counts counts = {0};
    *hunk = (struct patch_hunk){.header = (uint32_t)(reader->at - diff), .line = reader->line};
    if (read_header(reader, hunk, error) < 0)
        return -1;
    patch_advance(reader);
    struct patch_reader start = *reader;
    hunk->body = (uint32_t)(start.at - diff);
    if (!read_counted(reader, hunk, &counts)) {
        *reader = start;
        counts = (struct counts){0};
        read_all(reader, false, &counts);
        if (!ends_well(reader))
            return not_ended(reader, error);
        hunk->recounted = true;
        hunk->old_count = counts.old;
        hunk->new_count = counts.new;
    }
    return end_hunk(hunk, &counts, &start, (uint32_t)(reader->at - diff), error);
}

bool patch_at_bare_hunk(const struct patch_reader *reader)
{
    struct patch_line line;
    if (!patch_header_line(reader, &line) || !patch_starts(line, "@@"))
        return false;
    if (line.size > 2 && line.text[2] != ' ')
        return false;
    return line.size < 5 || !memchr("+-", line.text[3], 2) || line.text[4] < '0' || line.text[4] > '9';
}

// Moves past the lines that begin with "@@". There may be none.
static void pass_headers(struct patch_reader *reader, bool begin, struct patch_hunk *hunk)
{
    struct patch_line line;
    while (patch_header_line(reader, &line) && (begin ? patch_starts(line, "@@") : patch_at_bare_hunk(reader))) {
        if (!hunk->header_size)
            hunk->header_size = (uint32_t)line.size;
        patch_advance(reader);
    }
}

// Whether a body of the form of "*** Begin Patch" can end here.
static bool begins_next(struct patch_reader reader)
{
    struct patch_line line;
    patch_pass_blank(&reader);
    return !patch_header_line(&reader, &line) || patch_starts(line, "@@") || patch_starts(line, "*** ");
}

int patch_read_bare_hunk(struct patch_reader *reader, const char *diff, bool begin, struct patch_hunk *hunk,
                         struct error *error)
{
    struct counts counts = {0};
    struct patch_line line;
    *hunk = (struct patch_hunk){.header = (uint32_t)(reader->at - diff), .line = reader->line, .by_content = true};
    pass_headers(reader, begin, hunk);
    struct patch_reader start = *reader;
    hunk->body = (uint32_t)(start.at - diff);
    if (!hunk->header_size && patch_header_line(reader, &line))
        hunk->header_size = (uint32_t)line.size; // shown in its place
    read_all(reader, begin, &counts);
    if (begin ? !begins_next(*reader) : !ends_well(reader))
        return not_ended(reader, error);
    hunk->old_count = counts.old;
    hunk->new_count = counts.new;
    return end_hunk(hunk, &counts, &start, (uint32_t)(reader->at - diff), error);
}
