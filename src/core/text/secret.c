// SPDX-License-Identifier: Apache-2.0
// Finds secrets in text, see secret.h. One pass stops at each byte where a secret may begin; nearly all of a text is
// passed over. From there the text is read in each way in which it may be written, as long as it is the secret.
#include "core/text/secret.h"

#include "core/text/text.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PART_LEAST = 4, ESCAPE_MAX = 6 };

static const char redacted[] = "[redacted]";

// A secret, or the base64 characters that it alone decides.
struct form {
    char *bytes; // owned
    size_t size;
    size_t next; // 1 + the index of another form with the same first byte; 0: none
    bool is_base64;
};

static struct form *forms;
static size_t form_count;
static size_t latest[UCHAR_MAX + 1]; // by a first byte, as `next`

// How a text may be written.
enum way { AS_IS, PERCENT, JSON, SHELL, WAYS };

static const char escape_mark[WAYS] = {[PERCENT] = '%', [JSON] = '\\', [SHELL] = '\''};

static bool beginnings[UINT16_MAX + 1]; // pairs of bytes with which a form may begin

struct character {
    char bytes[4];
    size_t size;
    size_t length; // in the text; 0: the text ends within an escape
};

// The value of so many hex digits, or -1.
static long hex_value(const char *digits, size_t count)
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

static struct character encode_utf8(long code, size_t length)
{
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    struct character character = {.size = size, .length = length};
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        character.bytes[i] = (char)(0x80 | (code & 0x3F));
    character.bytes[0] = (char)(leads[size] | code);
    return character;
}

// Reads \uXXXX, or a pair of surrogates.
static struct character read_unicode(const char *text, size_t size)
{
    long code = hex_value(text + 2, 4), low = -1;
    if (code >> 10 == 0xD8 >> 2 && size >= 12 && text[6] == '\\' && text[7] == 'u')
        low = hex_value(text + 8, 4);
    if (low >> 10 == 0xDC >> 2)
        return encode_utf8(0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF), 12);
    return encode_utf8(code, 6);
}

// Reads a quote within quotes, as bash and Python's shlex write it.
static struct character read_quote(const char *text, size_t size)
{
    static const char *const quotes[] = {"'\\''", "'\"'\"'"};
    for (size_t i = 0; i < sizeof quotes / sizeof *quotes; i++) {
        size_t length = strlen(quotes[i]);
        if (memcmp(text, quotes[i], size_least(size, length)) == 0)
            return size < length ? (struct character){.length = 0} : (struct character){{'\''}, 1, length};
    }
    return (struct character){{*text}, 1, 1};
}

// Reads the first character of a text, which is not empty. An escape that is malformed stands for itself.
static struct character read_character(const char *text, size_t size, enum way way)
{
    static const char names[] = "bfnrt", controls[] = "\b\f\n\r\t";
    bool is_unicode = way == JSON && size > 1 && text[1] == 'u';
    size_t mark = is_unicode ? 2 : 1, digits = is_unicode ? 4 : way == PERCENT ? 2 : 0;
    size_t left = size_least(size - mark, digits);
    if (way == AS_IS || *text != escape_mark[way] || hex_value(text + mark, left) < 0)
        return (struct character){{*text}, 1, 1};
    if (way == SHELL)
        return read_quote(text, size);
    if (left < digits || size == 1)
        return (struct character){.length = 0};
    if (is_unicode)
        return read_unicode(text, size);
    if (way == PERCENT)
        return (struct character){{(char)hex_value(text + 1, 2)}, 1, 3};
    const char *name = text[1] ? strchr(names, text[1]) : NULL;
    return (struct character){{name ? controls[name - names] : text[1]}, 1, 2};
}

// Whether the form goes on with the character.
static bool goes_on(const struct form *form, size_t at, const struct character *character)
{
    char byte = character->bytes[0];
    if (form->is_base64)
        return form->bytes[at] == (byte == '-' ? '+' : byte == '_' ? '/' : byte);
    return character->size <= form->size - at && memcmp(form->bytes + at, character->bytes, character->size) == 0;
}

// How far a text is a form.
struct match {
    size_t count;        // of the form's bytes
    size_t end;          // in the text
    bool is_open;        // the text ended first
    bool has_mark[WAYS]; // of escapes, as far as the text was looked at: without one, the way reads the same as AS_IS
};

// Compares the text from `at` on with the form's bytes from `from` on. For "pass%77ord" and the form "password", read
// as PERCENT: 8 bytes of the form, up to 10 in the text; for "passwo": 6, and open, for the rest may follow.
static struct match compare(const struct form *form, size_t from, const char *text, size_t size, size_t at,
                            enum way way)
{
    struct match match = {.end = at};
    for (size_t i = from, blanks = 0; i < form->size;) {
        struct character character = {0};
        if (at < size) {
            character = read_character(text + at, size - at, way);
            for (enum way other = PERCENT; other < WAYS; other++)
                match.has_mark[other] |= text[at] == escape_mark[other];
        }
        match.is_open = character.length == 0;
        bool is_blank = memchr(" \n\r\t", character.bytes[0], 4);
        bool wraps = is_blank && form->is_base64 && i > 0 && blanks++ < SECRET_BLANKS_MAX;
        if (match.is_open || (!wraps && !goes_on(form, i, &character)))
            return match;
        at += character.length;
        if (wraps)
            continue;
        i += character.size;
        blanks = 0;
        match.count = i - from;
        match.end = at;
    }
    return match;
}

static inline bool *beginning(const char *pair)
{
    uint16_t index;
    memcpy(&index, pair, sizeof index);
    return &beginnings[index];
}

bool secret_is_known(void)
{
    return form_count > 0;
}

static bool begins(const struct form *form, const char *bytes, size_t size, enum way way)
{
    return compare(form, 0, bytes, size, 0, way).is_open;
}

// Learns how the form may begin in a text: its first byte, or an escape of it, and what may follow that.
static void add_beginnings(const struct form *form)
{
    const char firsts[] = {form->bytes[0], '-', '_', '%', '\\'};    // - and _ stand for + and /
    char seconds[] = "  -_%\\\"' \t\r\n0123456789abcdefABCDEFnrtu"; // escapes, blanks where base64 wraps, digits, names
    seconds[0] = form->bytes[0], seconds[1] = form->bytes[form->size > 1];
    for (size_t i = 0; i < sizeof firsts * WAYS; i++) {
        char pair[] = {firsts[i / WAYS], 0};
        bool is_first = begins(form, pair, 1, i % WAYS);
        for (size_t next = 0; is_first && next < sizeof seconds - 1; next++) {
            pair[1] = seconds[next];
            *beginning(pair) |= begins(form, pair, 2, i % WAYS);
        }
    }
}

static int add_form(const char *bytes, size_t size, bool is_base64)
{
    size_t *first = &latest[(unsigned char)*bytes];
    struct form form = {malloc(size), size, *first, is_base64};
    struct form *more = array_grow(forms, form_count, sizeof *more);
    if (more)
        forms = more;
    if (!form.bytes || !more) {
        free(form.bytes);
        return -1;
    }
    memcpy(form.bytes, bytes, size);
    add_beginnings(&form);
    forms[form_count++] = form;
    *first = form_count;
    return 0;
}

// Adds the base64 of the secret when `before` bytes, modulo 3, come before it: the characters that all 6 bits of are
// the secret's. With 1 byte before, the first of "abcdef" stands in bits 8 to 15; so character 2 (bits 12 to 17) is the
// first.
static int add_base64(const char *bytes, size_t size, size_t before)
{
    cleanup_buffer struct buffer shifted = {0}, encoded = {0};
    if (buffer_append(&shifted, "\0\0", before) < 0 || buffer_append(&shifted, bytes, size) < 0 ||
        text_base64_encode(shifted.data, shifted.size, &encoded) < 0)
        return -1;
    size_t first = (before * 8 + 5) / 6, end = (before + size) * 8 / 6;
    return add_form(encoded.data + first, end - first, true);
}

int secret_add(const char *bytes, size_t size)
{
    if (size < SECRET_SHORTEST)
        return 0;
    for (size_t i = 0; i < form_count; i++)
        if (!forms[i].is_base64 && forms[i].size == size && memcmp(forms[i].bytes, bytes, size) == 0)
            return 1;
    for (size_t before = 0; before < 3; before++)
        if (add_base64(bytes, size, before) < 0)
            return -1;
    return add_form(bytes, size, false) < 0 ? -1 : 1;
}

// The first place from `at` on where a secret may begin; the last byte may be one.
static size_t next_beginning(const char *text, size_t size, size_t at)
{
    for (const char *p = text + at; at + 4 < size; at += 4, p += 4)
        if (*beginning(p) | *beginning(p + 1) | *beginning(p + 2) | *beginning(p + 3))
            break;
    while (at + 1 < size && !*beginning(text + at))
        at++;
    return at;
}

// What stands at a place of a text.
struct sight {
    size_t end;   // of the longest secret, or 0
    size_t begun; // the most bytes of a secret that the end of the text cuts
    bool is_open; // one is cut there; at the end of a line not by 1 to 3 characters of base64, which any word may be
    bool is_weak; // by these
};

static struct match see(struct sight *sight, const struct form *form, const char *text, size_t size, size_t at,
                        enum way way)
{
    struct match match = compare(form, 0, text, size, at, way);
    bool is_weak = match.is_open && form->is_base64 && match.count < PART_LEAST && text[size - 1] == '\n';
    sight->is_weak |= is_weak;
    sight->is_open |= match.is_open && !is_weak;
    if (match.is_open && match.count > sight->begun)
        sight->begun = match.count;
    if (match.count == form->size && match.end > sight->end)
        sight->end = match.end;
    return match;
}

// Looks for the forms with a first byte. Where it is no escape, another way reads the text as AS_IS does until it meets
// its mark.
static void see_all(struct sight *sight, char first, const char *text, size_t size, size_t at, enum way way)
{
    for (size_t i = latest[(unsigned char)first]; i > 0; i = forms[i - 1].next) {
        struct match match = see(sight, &forms[i - 1], text, size, at, way);
        for (enum way other = PERCENT; way == AS_IS && other < WAYS; other++)
            if (match.has_mark[other] && text[at] != escape_mark[other])
                see(sight, &forms[i - 1], text, size, at, other);
    }
}

static struct sight look(const char *text, size_t size, size_t at)
{
    struct sight sight = {0};
    for (enum way way = AS_IS; way < WAYS; way++) {
        if (way != AS_IS && text[at] != escape_mark[way])
            continue;
        struct character character = read_character(text + at, size - at, way);
        char first = character.bytes[0];
        sight.is_open |= character.length == 0 && form_count > 0;
        if (character.length > 0)
            see_all(&sight, first, text, size, at, way);
        if (first == '-' || first == '_') // base64 of the URL alphabet
            see_all(&sight, first == '-' ? '+' : '/', text, size, at, way);
    }
    return sight;
}

// Where the rest of a form from `from` on ends that stands at a place; or 0.
static size_t end_of_part(const struct form *form, size_t from, const struct match *match, unsigned cuts)
{
    bool is_cut = match->is_open && match->count >= PART_LEAST && cuts & SECRET_CUT_END;
    return is_cut || from + match->count == form->size ? match->end : 0;
}

// Where the longest rest of a form ends that stands at a place; or 0.
static size_t end_of_rest(const char *text, size_t size, size_t at, unsigned cuts)
{
    size_t longest = 0;
    for (const struct form *form = forms; form < forms + form_count; form++) {
        for (size_t from = 1; from + PART_LEAST <= form->size; from++) {
            struct match plain = compare(form, from, text, size, at, AS_IS);
            size_t end = end_of_part(form, from, &plain, cuts);
            for (enum way way = PERCENT; way < WAYS; way++) {
                if (!plain.has_mark[way])
                    continue;
                struct match match = compare(form, from, text, size, at, way);
                size_t other = end_of_part(form, from, &match, cuts);
                end = other > end ? other : end;
            }
            longest = end > longest ? end : longest;
        }
    }
    return longest;
}

// Where the rest of a secret ends with which a text begins whose start was cut, perhaps within an escape; or 0.
static size_t end_of_first_rest(const char *text, size_t size, unsigned cuts)
{
    for (size_t at = 0; at < size && at < ESCAPE_MAX && cuts & SECRET_CUT_START; at++) {
        size_t end = end_of_rest(text, size, at, cuts);
        if (end > 0)
            return end;
        if (!memchr("u\\\"'", text[at], 4) && hex_value(text + at, 1) < 0)
            break;
    }
    return 0;
}

// A text that is copied without its secrets.
struct copy {
    const char *text;
    struct buffer *clean;
    size_t old_size; // of clean
    size_t done;     // bytes of the text that were copied, or are of a secret
    struct {
        size_t start, done, clean_size; // where it begins, and what was before it
    } last;                             // the secret that was found last
    bool failed;                        // memory is out
};

static void append(struct copy *copy, const char *bytes, size_t size)
{
    copy->failed |= buffer_append(copy->clean, bytes, size) < 0;
}

static struct copy begin_copy(const char *text, size_t size, unsigned cuts, struct buffer *clean)
{
    struct copy copy = {.text = text, .clean = clean, .old_size = clean->size};
    copy.last.clean_size = clean->size;
    copy.done = end_of_first_rest(text, size, cuts);
    if (copy.done > 0)
        append(&copy, redacted, strlen(redacted));
    return copy;
}

// One that begins within the last makes that longer.
static void redact_one(struct copy *copy, size_t start, size_t end)
{
    if (start >= copy->done) {
        copy->last.start = start;
        copy->last.done = copy->done;
        copy->last.clean_size = copy->clean->size;
        append(copy, copy->text + copy->done, start - copy->done);
        append(copy, redacted, strlen(redacted));
    }
    if (end > copy->done)
        copy->done = end;
}

// The copy ends before the last secret, where that begins.
static size_t take_back(struct copy *copy)
{
    copy->done = copy->last.done;
    copy->clean->size = copy->last.clean_size;
    return copy->last.start;
}

static int end_copy(struct copy *copy, size_t size)
{
    append(copy, copy->text + copy->done, size - copy->done);
    if (copy->failed)
        copy->clean->size = copy->old_size;
    return copy->failed ? -1 : 0;
}

int secret_redact_copy(const char *text, size_t size, unsigned cuts, struct buffer *clean)
{
    if (!secret_is_known())
        return 0;
    struct copy copy = begin_copy(text, size, cuts, clean);
    for (size_t at = 0; (at = next_beginning(text, size, at)) + PART_LEAST <= size; at++) {
        struct sight sight = look(text, size, at);
        bool is_cut = cuts & SECRET_CUT_END && sight.begun >= PART_LEAST;
        if (is_cut || sight.end > 0)
            redact_one(&copy, at, is_cut ? size : sight.end);
    }
    if (copy.done == 0)
        return 0;
    return end_copy(&copy, size) < 0 ? -1 : 1;
}

int secret_redact_settled(const char *text, size_t *size, bool *is_cut, struct buffer *clean)
{
    struct copy copy = begin_copy(text, *size, *is_cut ? SECRET_CUT_START : 0, clean);
    size_t settled = *size;
    bool is_weak = false;
    for (size_t at = 0; (at = next_beginning(text, *size, at)) < *size; at++) {
        struct sight sight = look(text, *size, at);
        if (sight.is_open) {
            settled = at < copy.done ? take_back(&copy) : at;
            break;
        }
        is_weak |= sight.is_weak;
        if (sight.end > 0)
            redact_one(&copy, at, sight.end);
    }
    if (copy.done < settled)
        settled = copy.done + text_whole(text + copy.done, settled - copy.done);
    *size = settled;
    if (settled > 0)
        *is_cut = is_weak;
    return end_copy(&copy, settled);
}

int secret_redact(struct buffer *text, unsigned cuts)
{
    struct buffer clean = {0};
    int found = secret_redact_copy(text->data, text->size, cuts, &clean);
    if (found)
        buffer_free(found < 0 ? &clean : text);
    if (found > 0)
        *text = clean;
    if (cuts & SECRET_CUT_END)
        text->size = text_whole(text->data, text->size);
    return found < 0 ? -1 : text_repair_all(text);
}

int secret_append(const char *text, size_t size, unsigned cuts, struct buffer *out)
{
    cleanup_buffer struct buffer clean = {0};
    if (buffer_append(&clean, text, size) < 0 || secret_redact(&clean, cuts) < 0)
        return -1;
    return buffer_append(out, clean.data, clean.size);
}
