// SPDX-License-Identifier: Apache-2.0
// Finds secrets in text, see secret.h. The text is decoded character by character, once for each way of escaping, and
// every secret is sought in what that gives by the algorithm of Knuth, Morris and Pratt.
#include "core/secret.h"

#include "core/cleanup.h"
#include "core/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_PART = 4, LONGEST_UTF8 = 4 };

enum escape { AS_IS, PERCENT, JSON, ESCAPES };

static const char redacted[] = "[redacted]";
static const char escape_mark[ESCAPES] = {[PERCENT] = '%', [JSON] = '\\'};

// A secret, or the base64 characters that it alone decides.
struct form {
    unsigned char *bytes; // owned
    size_t *borders;      // owned; of each prefix: how much of its end is also its start
    size_t size;
    size_t matched; // how much of it the text ends with, while one is read
};

static struct form_list {
    struct form *forms;
    size_t count;
    size_t longest;
    bool begins[1 << CHAR_BIT]; // bytes with which a form begins
} lists[2];                     // secrets as they are, and as base64

static size_t advance(const struct form *form, size_t matched, unsigned char byte)
{
    while (matched > 0 && (matched == form->size || form->bytes[matched] != byte))
        matched = form->borders[matched - 1];
    return matched + (form->bytes[matched] == byte);
}

// Fills the borders of the form, whose bytes are there.
static void find_borders(struct form *form)
{
    form->borders[0] = 0;
    for (size_t i = 1; i < form->size; i++)
        form->borders[i] = advance(form, form->borders[i - 1], form->bytes[i]);
}

static int add_form(struct form_list *list, const char *bytes, size_t size)
{
    struct form form = {.bytes = malloc(size), .borders = malloc(size * sizeof(size_t)), .size = size};
    struct form *more = realloc(list->forms, (list->count + 1) * sizeof *more);
    if (more)
        list->forms = more;
    if (!form.bytes || !form.borders || !more) {
        free(form.bytes);
        free(form.borders);
        return -1;
    }
    memcpy(form.bytes, bytes, size);
    find_borders(&form);
    list->forms[list->count++] = form;
    list->longest = size > list->longest ? size : list->longest;
    list->begins[form.bytes[0]] = true;
    return 0;
}

// The secret in base64 when `before` bytes, modulo 3, come before it.
static int add_base64(const char *bytes, size_t size, size_t before)
{
    cleanup_buffer struct buffer shifted = {0}, encoded = {0};
    if (buffer_append(&shifted, "\0\0", before) < 0 || buffer_append(&shifted, bytes, size) < 0 ||
        text_base64_encode(shifted.data, shifted.size, &encoded) < 0)
        return -1;
    size_t first = (before * 8 + 5) / 6, end = (before + size) * 8 / 6;
    return add_form(&lists[1], encoded.data + first, end - first);
}

int secret_add(const char *bytes, size_t size)
{
    if (size < SECRET_SHORTEST)
        return 0;
    for (size_t i = 0; i < lists[0].count; i++)
        if (lists[0].forms[i].size == size && memcmp(lists[0].forms[i].bytes, bytes, size) == 0)
            return 1;
    for (size_t before = 0; before < 3; before++)
        if (add_base64(bytes, size, before) < 0)
            return -1;
    return add_form(&lists[0], bytes, size) < 0 ? -1 : 1;
}

bool secret_is_known(void)
{
    return lists[1].count > 0;
}

// A character of the text, as it is meant.
struct character {
    unsigned char bytes[LONGEST_UTF8];
    size_t size;
    size_t length; // in the text
};

// The number of so many hex digits, or -1.
static long hex(const char *digits, size_t count)
{
    long value = 0;
    for (size_t i = 0; i < count; i++) {
        const char *all = "0123456789abcdef0123456789ABCDEF", *digit = digits[i] ? strchr(all, digits[i]) : NULL;
        if (!digit)
            return -1;
        value = value << 4 | ((digit - all) & 15);
    }
    return value;
}

static void set_code_point(struct character *character, long code)
{
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    character->size = size;
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        character->bytes[i] = (unsigned char)(0x80 | (code & 0x3F));
    character->bytes[0] = (unsigned char)(size == 1 ? code : leads[size] | code);
}

// \uXXXX, or two of them that are one character.
static void decode_unicode(const char *text, size_t left, struct character *character)
{
    long code = left >= 6 ? hex(text + 2, 4) : -1;
    if (code < 0)
        return;
    character->length = 6;
    long low = code >> 10 == 0xD8 >> 2 && left >= 12 && text[6] == '\\' && text[7] == 'u' ? hex(text + 8, 4) : -1;
    if (low >> 10 == 0xDC >> 2) {
        character->length = 12;
        code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF);
    }
    set_code_point(character, code);
}

static void decode_json(const char *text, size_t left, struct character *character)
{
    static const char names[] = "bfnrt", controls[] = "\b\f\n\r\t";
    if (left < 2)
        return;
    if (text[1] == 'u') {
        decode_unicode(text, left, character);
        return;
    }
    const char *name = text[1] ? strchr(names, text[1]) : NULL;
    character->bytes[0] = (unsigned char)(name ? controls[name - names] : text[1]);
    character->length = 2;
}

// What stands at text. An escape that is malformed, or torn by the text's end, stands for itself.
static void decode(const char *text, size_t left, enum escape escape, struct character *character)
{
    *character = (struct character){.bytes = {(unsigned char)*text}, .size = 1, .length = 1};
    if (escape == AS_IS || *text != escape_mark[escape])
        return;
    if (escape == JSON) {
        decode_json(text, left, character);
    } else if (left >= 3 && hex(text + 1, 2) >= 0) {
        character->bytes[0] = (unsigned char)hex(text + 1, 2);
        character->length = 3;
    }
}

// The byte as the standard alphabet of base64 has it; -1 for what only wraps lines.
static int base64_byte(unsigned char byte)
{
    if (byte == '\n' || byte == '\r' || byte == '\t' || byte == ' ')
        return -1;
    return byte == '-' ? '+' : byte == '_' ? '/' : byte;
}

// One way to read a text, and the places of secrets that it shows.
struct reading {
    struct form_list *list;
    enum escape escape;
    const char *text;
    size_t size;
    size_t *starts; // ring of the last characters' places in the text
    size_t count;   // of bytes read
    bool active;    // the text so far ends with the beginning of a form
    struct range {
        size_t start, end;
    } * ranges; // in order, disjoint
    size_t range_count, range_room;
};

static void free_reading(struct reading *reading)
{
    free(reading->starts);
    free(reading->ranges);
}

// Ends never decrease, so what a range overlaps was added last.
static int add_range(struct reading *reading, size_t start, size_t end)
{
    struct range *ranges = reading->ranges;
    for (; reading->range_count > 0 && ranges[reading->range_count - 1].end > start; reading->range_count--) {
        struct range last = ranges[reading->range_count - 1];
        start = last.start < start ? last.start : start;
        end = last.end > end ? last.end : end;
    }
    if (reading->range_count == reading->range_room) {
        size_t room = reading->range_room ? 2 * reading->range_room : 16;
        ranges = realloc(ranges, room * sizeof *ranges);
        if (!ranges)
            return -1;
        reading->ranges = ranges;
        reading->range_room = room;
    }
    ranges[reading->range_count++] = (struct range){start, end};
    return 0;
}

static size_t start_of(const struct reading *reading, size_t matched)
{
    return reading->starts[(reading->count - matched) % reading->list->longest];
}

// Reads one byte of the character at `at`, which ends at `end`.
static int read_byte(struct reading *reading, unsigned char byte, size_t at, size_t end)
{
    struct form_list *list = reading->list;
    int outcome = 0;
    if (!reading->active && !list->begins[byte])
        return 0;
    reading->active = false;
    reading->starts[reading->count++ % list->longest] = at;
    for (struct form *form = list->forms; form < list->forms + list->count; form++) {
        form->matched = advance(form, form->matched, byte);
        reading->active |= form->matched > 0;
        if (form->matched == form->size && add_range(reading, start_of(reading, form->size), end) < 0)
            outcome = -1;
    }
    return outcome;
}

// A part of a secret that a cut left at the end of the text, perhaps with a torn escape after it.
static int read_end(struct reading *reading)
{
    for (struct form *form = reading->list->forms; form < reading->list->forms + reading->list->count; form++)
        if (form->matched >= LEAST_PART && add_range(reading, start_of(reading, form->matched), reading->size) < 0)
            return -1;
    return 0;
}

// The byte that the reading sees; -1 for one that it skips.
static int byte_of(const struct reading *reading, unsigned char byte)
{
    return reading->list == &lists[1] ? base64_byte(byte) : byte;
}

// Whether the end of the text may have torn an escape at `at` in two.
static bool is_torn(const struct reading *reading, size_t at)
{
    const char *text = reading->text + at;
    size_t left = reading->size - at;
    if (reading->escape == AS_IS || *text != escape_mark[reading->escape])
        return false;
    return reading->escape == PERCENT ? left < 3 : left < 2 || (text[1] == 'u' && left < 6);
}

// Reads to the end or, if the end is cut, to an escape that the cut may have torn: *end says where that is.
static int read_characters(struct reading *reading, bool cut, size_t *end)
{
    struct character character;
    size_t at;
    for (size_t i = 0; i < reading->list->count; i++)
        reading->list->forms[i].matched = 0;
    for (at = 0; at < reading->size; at += character.length) {
        if (cut && is_torn(reading, at))
            break;
        decode(reading->text + at, reading->size - at, reading->escape, &character);
        for (size_t i = 0; i < character.size; i++) {
            int byte = byte_of(reading, character.bytes[i]);
            if (byte >= 0 && read_byte(reading, (unsigned char)byte, at, at + character.length) < 0)
                return -1;
        }
    }
    *end = at;
    return 0;
}

static int read_text(struct reading *reading, unsigned cuts)
{
    size_t end;
    if (read_characters(reading, cuts & SECRET_CUT_END, &end) < 0)
        return -1;
    return cuts & SECRET_CUT_END ? read_end(reading) : 0;
}

// Where the form's bytes from `from` on end in the text, if they stand at `at`, or 0. If the end is cut too, the text
// may end before them.
static size_t end_of_rest(const struct reading *reading, const struct form *form, size_t from, size_t at, unsigned cuts)
{
    struct character character;
    for (size_t i = from; i < form->size; at += character.length) {
        if (at == reading->size || (cuts & SECRET_CUT_END && is_torn(reading, at)))
            return cuts & SECRET_CUT_END && i - from >= LEAST_PART ? reading->size : 0;
        decode(reading->text + at, reading->size - at, reading->escape, &character);
        for (size_t j = 0; j < character.size; j++) {
            int byte = byte_of(reading, character.bytes[j]);
            if (byte >= 0 && (i == form->size || form->bytes[i++] != byte))
                return 0;
        }
    }
    return at;
}

static size_t end_of_longest_rest(const struct reading *reading, size_t at, unsigned cuts)
{
    size_t longest = 0;
    const struct form_list *list = reading->list;
    for (const struct form *form = list->forms; form < list->forms + list->count; form++)
        for (size_t from = 1; from + LEAST_PART <= form->size; from++) {
            size_t end = end_of_rest(reading, form, from, at, cuts);
            longest = end > longest ? end : longest;
        }
    return longest;
}

// A part of a secret that a cut left at the start of the text, perhaps after the rest of a torn escape.
static int read_start(struct reading *reading, unsigned cuts)
{
    size_t most = reading->escape == AS_IS ? 0 : reading->escape == PERCENT ? 2 : 5;
    for (size_t at = 0; at <= most && at < reading->size; at++) {
        size_t end = end_of_longest_rest(reading, at, cuts);
        if (end > 0)
            return add_range(reading, 0, end);
        if (reading->text[at] != 'u' && hex(reading->text + at, 1) < 0)
            break;
    }
    return 0;
}

static int replace(const struct reading *reading, struct buffer *text)
{
    cleanup_buffer struct buffer out = {0};
    size_t done = 0;
    for (size_t i = 0; i < reading->range_count; i++) {
        struct range range = reading->ranges[i];
        if (buffer_append(&out, text->data + done, range.start - done) < 0 ||
            buffer_append(&out, redacted, sizeof redacted - 1) < 0)
            return -1;
        done = range.end;
    }
    if (buffer_append(&out, text->data + done, text->size - done) < 0)
        return -1;
    struct buffer old = *text;
    *text = out;
    out = old;
    return 1;
}

static int redact_in(struct buffer *text, struct form_list *list, enum escape escape, unsigned cuts)
{
    struct reading reading = {.list = list, .escape = escape, .text = text->data, .size = text->size};
    reading.starts = malloc(list->longest * sizeof *reading.starts);
    int outcome = reading.starts ? 0 : -1;
    if (outcome == 0 && cuts & SECRET_CUT_START)
        outcome = read_start(&reading, cuts);
    if (outcome == 0)
        outcome = read_text(&reading, cuts);
    if (outcome == 0 && reading.range_count > 0)
        outcome = replace(&reading, text);
    free_reading(&reading);
    return outcome;
}

// The place, at most `most`, that no secret which this reading shows lies across, and no beginning of one at the end.
static size_t settled_in(struct form_list *list, enum escape escape, const char *text, size_t size, size_t most,
                         bool *cut)
{
    bool at_line_end = size > 0 && text[size - 1] == '\n';
    size_t end, least = list == &lists[1] && at_line_end ? LEAST_PART : 1;
    struct reading reading = {.list = list, .escape = escape, .text = text, .size = size};
    reading.starts = malloc(list->longest * sizeof *reading.starts);
    if (!reading.starts || read_characters(&reading, true, &end) < 0) {
        free_reading(&reading);
        return 0;
    }
    most = end < most ? end : most;
    for (const struct form *form = list->forms; form < list->forms + list->count; form++) {
        size_t begun = form->matched == form->size ? form->borders[form->size - 1] : form->matched;
        if (begun >= least && start_of(&reading, begun) < most)
            most = start_of(&reading, begun);
        *cut |= begun > 0 && begun < least;
    }
    for (size_t i = 0; i < reading.range_count; i++)
        if (reading.ranges[i].start < most && most < reading.ranges[i].end)
            most = reading.ranges[i].start;
    free_reading(&reading);
    return most;
}

size_t secret_settled(const char *text, size_t size, bool *cut)
{
    size_t settled = size, before;
    *cut = false;
    if (!secret_is_known())
        return size;
    do { // a place that one reading moves may then lie in a secret that another one shows
        before = settled;
        for (enum escape escape = AS_IS; escape < ESCAPES; escape++)
            for (size_t i = 0; i < 2; i++)
                if (escape == AS_IS || memchr(text, escape_mark[escape], size))
                    settled = settled_in(&lists[i], escape, text, size, settled, cut);
    } while (settled > 0 && settled < before);
    return settled;
}

int secret_redact(struct buffer *text, unsigned cuts)
{
    int found = 0;
    if (!secret_is_known() || text->size < LEAST_PART)
        return 0;
    for (enum escape escape = AS_IS; escape < ESCAPES; escape++) {
        if (escape != AS_IS && !memchr(text->data, escape_mark[escape], text->size))
            continue;
        for (size_t i = 0; i < 2; i++) {
            int outcome = redact_in(text, &lists[i], escape, cuts);
            if (outcome < 0)
                return -1;
            found |= outcome;
        }
    }
    return found;
}
