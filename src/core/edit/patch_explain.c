// SPDX-License-Identifier: Apache-2.0
// Explains why a hunk fits nowhere, see patch_fit.h.
#include "core/base/cleanup.h"
#include "core/edit/patch_fit.h"
#include "core/text/secret.h"
#include "core/text/text.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 80, SHOWN_SIZE = SHOWN + 8 };

// Quotes a line for people: at most SHOWN bytes of it, without secrets, control characters as '?'. If memory is out,
// the quotes are empty.
static const char *show(struct patch_text line, char shown[SHOWN_SIZE])
{
    cleanup_buffer struct buffer clean = {0};
    if (buffer_append(&clean, line.text, line.size) < 0 || secret_redact(&clean, 0) < 0)
        clean.size = 0;
    size_t size = text_cut(clean.data, clean.size, SHOWN);
    shown[0] = '"';
    for (size_t i = 0; i < size; i++)
        shown[i + 1] = clean.data[i] == '\t' ? ' ' : (unsigned char)clean.data[i] < ' ' ? '?' : clean.data[i];
    strcpy(shown + 1 + size, size < clean.size ? "...\"" : "\"");
    return shown;
}

// "expected X at line N, found Y".
static void describe_difference(const struct patch_search *search, int64_t place, char *text, size_t size)
{
    uint32_t first;
    char expected[SHOWN_SIZE], found[SHOWN_SIZE];
    patch_count_matching(search, place, &first);
    if (first == search->side->count) {
        snprintf(text, size, "its lines are there, but above the hunk before it or not at the end where they belong");
        return;
    }
    struct patch_text wanted = search->side->lines[first]->text;
    show(wanted, expected);
    if (place + first >= search->image->count) {
        snprintf(text, size, "expected %s at line %lld, but the file has %u lines", expected,
                 (long long)place + first + 1, search->image->count);
        return;
    }
    struct patch_text there = patch_image_line(search->image, (uint32_t)(place + first));
    bool same = there.size == wanted.size && memcmp(there.text, wanted.text, wanted.size) == 0;
    snprintf(text, size, "expected %s%s at line %lld, found %s%s", expected,
             !same            ? ""
             : wanted.newline ? " with a newline"
                              : " without a newline",
             (long long)place + first + 1, show(there, found),
             !same           ? ""
             : there.newline ? " with one"
                             : " without one");
}

static void describe_nearest(struct patch_search *search, int64_t place, char *text, size_t size)
{
    uint32_t matching;
    int64_t nearest = patch_find_nearest(search, &matching);
    if (nearest < 0)
        snprintf(text, size, "; none of its lines are in the file");
    else if (nearest == place)
        snprintf(text, size, "; no other place fits better");
    else
        snprintf(text, size, "; it fits best at line %lld, where %u of its %u lines are found", (long long)nearest + 1,
                 matching, search->side->count);
}

// Whether the file already has the new side. Lines that are only removed prove nothing without context.
static bool is_applied(const struct patch_search *search, int64_t *place)
{
    struct error error = {0};
    struct patch_search reversed = *search;
    reversed.side = &search->body->new;
    reversed.start = search->hunk->new_start;
    int64_t other;
    int found = !reversed.side->count      ? 0
                : search->hunk->by_content ? patch_find_only(&reversed, 0, INT64_MAX / 2, &other, &error)
                                           : patch_find(&reversed, 0, &error);
    error_clear(&error);
    *place = reversed.place;
    return found > 0;
}

// Where the hunk should be. Without numbers: where most of its lines are.
static int64_t place_in_question(struct patch_search *search)
{
    uint32_t matching;
    int64_t place = search->hunk->by_content ? patch_find_nearest(search, &matching) : search->guess;
    return place < 0 ? 0 : place;
}

static const char *show_header(const struct patch_search *search, char shown[SHOWN_SIZE])
{
    const struct patch_hunk *hunk = search->hunk;
    return show((struct patch_text){search->patch->diff + hunk->header, hunk->header_size, true}, shown);
}

int patch_explain_ambiguous(const struct patch_search *search, int64_t place, int64_t other, struct error *error)
{
    char header[SHOWN_SIZE];
    return error_set(error, "patch_ambiguous", 0,
                     "hunk %u of %u %s fits as well at line %lld as at line %lld; give it more lines of context",
                     search->number, search->file->hunk_count, show_header(search, header), (long long)place + 1,
                     (long long)other + 1);
}

int patch_explain_mismatch(struct patch_search *search, struct error *error)
{
    char header[SHOWN_SIZE], difference[4 * SHOWN_SIZE], nearest[SHOWN_SIZE];
    uint32_t number = search->number, count = search->file->hunk_count;
    int64_t place;
    show_header(search, header);
    search->head = search->tail = 0;
    if (is_applied(search, &place))
        return error_set(error, "already_applied", 0, "hunk %u of %u %s: the change is already there, at line %lld",
                         number, count, header, (long long)place + 1);
    place = place_in_question(search);
    if (!search->side->count)
        return error_set(
            error, "patch_mismatch", 0,
            "hunk %u of %u %s adds after line %u, but the file has %u lines and the hunk before ends at %u", number,
            count, header, search->hunk->old_start, search->image->count, search->floor);
    describe_difference(search, place, difference, sizeof difference);
    describe_nearest(search, place, nearest, sizeof nearest);
    return error_set(error, "patch_mismatch", 0, "hunk %u of %u %s does not fit: %s%s", number, count, header,
                     difference, nearest);
}

bool patch_is_as_added(const struct patch *patch, const struct patch_file *file, const struct patch_image *image)
{
    struct patch_body body = {0};
    bool same = patch_body_read(&body, patch, &patch->hunks[file->first_hunk], PATCH_ENDS_EXACT) == 0 &&
                body.count == image->count;
    for (uint32_t i = 0; same && i < body.count; i++)
        same = patch_text_equal(body.lines[i].text, patch_image_line(image, i));
    patch_body_free(&body);
    return same;
}

int patch_explain_exists(const struct patch *patch, const struct patch_file *file, const struct patch_image *image,
                         struct error *error)
{
    if (patch_is_as_added(patch, file, image))
        return error_set(error, "already_applied", 0,
                         "the change is already there: the file is as the diff would make it");
    return error_set(error, "already_exists", 0, "the diff says that the file is new or empty, but it has %u lines",
                     image->count);
}
