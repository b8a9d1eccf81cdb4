// SPDX-License-Identifier: Apache-2.0
// Finds a hunk by its lines alone, see patch_fit.h.
#include "core/base/interrupt.h"
#include "core/edit/patch_fit.h"
#include "core/edit/patch_parse.h"

#include <string.h>

struct line_range {
    int64_t first, last; // places
};

static struct patch_text trim(struct patch_text text)
{
    while (text.size && memchr(" \t\r", text.text[text.size - 1], 3))
        text.size--;
    for (; text.size && memchr(" \t", text.text[0], 2); text.size--)
        text.text++;
    return text;
}

static bool has_word(struct patch_text text)
{
    for (uint32_t i = 0; i < text.size; i++) {
        char lower = (char)(text.text[i] | 32);
        if ((lower >= 'a' && lower <= 'z') || (text.text[i] >= '0' && text.text[i] <= '9'))
            return true;
    }
    return false;
}

// What an @@ line names: "@@ text", "@@ text @@" or "@@ ... @@ text". Size 0: nothing.
static struct patch_text named_by(struct patch_line line)
{
    struct patch_text text = trim((struct patch_text){line.text + 2, (uint32_t)line.size - 2, true});
    const char *mark = memmem(text.text, text.size, "@@", 2);
    if (mark) {
        struct patch_text after =
            trim((struct patch_text){mark + 2, (uint32_t)(text.text + text.size - mark) - 2, true});
        text = after.size ? after : trim((struct patch_text){text.text, (uint32_t)(mark - text.text), true});
    }
    return has_word(text) ? text : (struct patch_text){0};
}

// The only line in range that is the text or, if there is none, the only one that begins with it; else -1.
static int64_t find_named(const struct patch_image *image, struct line_range range, struct patch_text text)
{
    int64_t same = -1, begins = -1;
    uint32_t all_same = 0, all_begin = 0;
    for (int64_t i = range.first; i <= range.last && i < image->count; i++) {
        struct patch_text there = trim(patch_image_line(image, (uint32_t)i));
        if (there.size < text.size || memcmp(there.text, text.text, text.size) != 0)
            continue;
        if (there.size == text.size && !all_same++)
            same = i;
        if (!all_begin++)
            begins = i;
    }
    if (all_same)
        return all_same == 1 ? same : -1;
    return all_begin == 1 ? begins : -1;
}

static uint32_t indent_of(struct patch_text text)
{
    uint32_t indent = 0;
    while (indent < text.size && memchr(" \t", text.text[indent], 2))
        indent++;
    return indent;
}

// The last line of the block that a line begins: lines that are indented more, and closing or opening braces.
static int64_t last_below(const struct patch_image *image, int64_t line, int64_t last)
{
    uint32_t indent = indent_of(patch_image_line(image, (uint32_t)line));
    int64_t i = line + 1;
    for (; i <= last && i < image->count; i++) {
        struct patch_text there = patch_image_line(image, (uint32_t)i);
        uint32_t deep = indent_of(there);
        if (trim(there).size && (deep < indent || (deep == indent && !memchr("{})]", there.text[deep], 4))))
            break;
    }
    return i - 1;
}

// Narrows the range to the blocks that the hunk's @@ lines name, each within the one before. 1; 0: they name no line,
// or more than one; -1 and *error: time is up.
static int narrow(const struct patch_search *search, struct line_range *range, struct error *error)
{
    const char *diff = search->patch->diff;
    struct patch_reader reader = {diff + search->hunk->header, diff + search->hunk->body, 1};
    struct patch_line line;
    int named = 0;
    for (; patch_header_line(&reader, &line); patch_advance(&reader)) {
        struct patch_text text = named_by(line);
        if (interrupt_check(error) < 0)
            return -1;
        if (!text.size)
            continue;
        int64_t at = find_named(search->image, *range, text);
        if (at < 0)
            return 0;
        *range = (struct line_range){at, last_below(search->image, at, range->last)};
        named = 1;
    }
    return named;
}

static struct line_range range_of(const struct patch_search *search)
{
    const struct patch_hunk *hunk = search->hunk;
    const struct patch_side *side = search->side;
    struct line_range range = {0, (int64_t)search->image->count - side->count};
    if (hunk->at_end || (!hunk->by_content && side->suffix < side->prefix))
        range.first = range.last;
    if (!hunk->by_content && side->prefix < side->suffix && hunk->old_start <= 1)
        range.last = 0;
    return range;
}

// Returns 1, 0 or -1 as patch_find_by_lines does.
static int find_place(struct patch_search *search, struct error *error)
{
    struct line_range range = range_of(search);
    int64_t other, none;
    if (range.first < 0 || range.last < range.first)
        return 0;
    int status = patch_find_only(search, range.first, range.last, &other, error);
    if (status < 2)
        return status;
    int64_t place = search->place;
    int narrowed = search->hunk->by_content ? narrow(search, &range, error) : 0;
    if (narrowed < 0)
        return -1;
    if (narrowed) {
        status = patch_find_only(search, range.first, range.last - search->side->count + 1, &none, error);
        if (status < 2 && status)
            return status;
    }
    return patch_explain_ambiguous(search, place, other, error);
}

// What the loose comparison ignored.
static unsigned differences(const struct patch_search *search)
{
    unsigned found = 0;
    for (uint32_t i = 0; i < search->side->count; i++) {
        struct patch_text there = patch_image_line(search->image, (uint32_t)(search->place + i));
        struct patch_text wanted = search->side->lines[i]->text;
        found |= there.size != wanted.size ? PATCH_TRAILING_BLANKS : 0u;
        found |= there.newline != wanted.newline ? PATCH_FINAL_NEWLINE : 0u;
    }
    return found;
}

static int find_loosely(struct patch_search *search, unsigned *tolerated, struct error *error)
{
    search->loose = true;
    int status = find_place(search, error);
    search->loose = false;
    if (status > 0)
        *tolerated |= differences(search);
    return status;
}

// Whether the hunk adds lines that are in the file already: where the hunk was found, else anywhere.
static bool is_there(const struct patch_search *search, bool found)
{
    uint32_t first;
    struct patch_search after = *search;
    struct error error = {0};
    after.side = &search->body->new;
    after.start = search->hunk->new_start;
    if (search->hunk->new_count == 0 || after.side->prefix == after.side->count)
        return false;
    if (found)
        return patch_count_matching(&after, search->place, &first) == after.side->count;
    bool there = patch_find(&after, 0, &error) > 0;
    error_clear(&error);
    return there;
}

// A hunk that only adds and has no context: it can go to the end, if it says so, and into an empty file.
static int find_bare_addition(struct patch_search *search, struct error *error)
{
    search->place = search->image->count;
    if (search->hunk->at_end || !search->image->count)
        return 1;
    return error_set(error, "patch_mismatch", 0,
                     "the hunk at line %u of the diff only adds lines and has neither line numbers nor lines around "
                     "it: where do they belong?",
                     search->hunk->line);
}

int patch_find_by_lines(struct patch_search *search, unsigned *tolerated, struct error *error)
{
    bool by_content = search->hunk->by_content;
    int status = 0;
    if (by_content && !search->side->count)
        return find_bare_addition(search, error);
    if (by_content)
        status = find_place(search, error);
    else if (is_there(search, false))
        return 0;
    if (!status)
        status = find_loosely(search, tolerated, error);
    if (status > 0 && search->place < search->floor)
        return 0;
    return status > 0 && by_content && is_there(search, true) ? 0 : status;
}
