// SPDX-License-Identifier: Apache-2.0
// How a secret's characters may be written, see secret_form.h and secret.h.
#include "core/secret_form.h"

#include <string.h>

enum { MOST_TIMES_ENCODED = 4, MOST_BACKSLASHES = 64 };

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    char letter = (char)(digit | 0x20);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// The byte of two hex digits, or -1.
static int hex_byte(const char *digits)
{
    int high = hex_digit(digits[0]), low = hex_digit(digits[1]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static bool is_blank(int byte)
{
    return byte == '\n' || byte == '\r' || byte == ' ' || byte == '\t';
}

// Whether a byte of the text stands for one of the form.
static bool is_same(const struct secret_form *form, int byte, unsigned char wanted)
{
    if (byte == wanted)
        return true;
    return form->base64 && ((byte == '-' && wanted == '+') || (byte == '_' && wanted == '/'));
}

// The length of the percent-encoding of wanted at text, encoded again or not; 0: there is none; -1: the text ends in
// it.
static int percent_length(const struct secret_form *form, const char *text, size_t left, unsigned char wanted)
{
    int found = 0;
    for (size_t digits = 1; digits <= 2 * MOST_TIMES_ENCODED; digits += 2) {
        if (left < digits + 2)
            return found ? found : -1;
        int byte = hex_byte(text + digits);
        if (byte >= 0 && is_same(form, byte, wanted))
            found = (int)digits + 2;
        if (byte != '%')
            break;
    }
    return found;
}

enum step { STEP_ON, STEP_SKIP, STEP_MISS, STEP_ENDS };

// Passes over what is percent-encoded and stands for no character of the form.
static enum step skip_percent(const struct secret_form *form, const char *text, size_t left, size_t *used)
{
    static const char skipped[] = "\\\n\r \t"; // blanks in base64 only
    for (const char *byte = skipped; *byte; byte++) {
        int length = percent_length(form, text, left, (unsigned char)*byte);
        if (length > 0) {
            *used = (size_t)length;
            return *byte == '\\' || form->base64 ? STEP_SKIP : STEP_MISS;
        }
    }
    return STEP_MISS;
}

// Whether ~0 or ~1 of a JSON Pointer stands for wanted, and is not itself in the secret.
static bool is_pointer_escape(const struct secret_form *form, const char *text, size_t left,
                              const unsigned char *wanted)
{
    if (left < 2 || *text != '~')
        return false;
    bool literal = wanted + 1 < form->bytes + form->size && wanted[1] == '0' && (left == 2 || text[2] != '0');
    return (*wanted == '/' && text[1] == '1') || (*wanted == '~' && text[1] == '0' && !literal);
}

// What a character that is not escaped, or percent-encoded, is for the form.
static enum step step_plain(const struct secret_form *form, const char *text, size_t left, const unsigned char *wanted,
                            size_t *used)
{
    *used = 1;
    if (*text == '%' && !form->verbatim) {
        int length = percent_length(form, text, left, *wanted);
        if (length > 0)
            *used = (size_t)length;
        if (length > 0 || *wanted == '%')
            return STEP_ON;
        return length < 0 ? STEP_ENDS : skip_percent(form, text, left, used);
    }
    if (is_pointer_escape(form, text, left, wanted))
        *used = 2;
    else if (!is_same(form, (unsigned char)*text, *wanted))
        return form->base64 && is_blank(*text) ? STEP_SKIP : STEP_MISS;
    return STEP_ON;
}

// What \uXXXX is, given from its u on.
static enum step step_unicode(const struct secret_form *form, const char *text, size_t left,
                              const unsigned char *wanted, size_t *used)
{
    if (left < 5)
        return *wanted == 'u' ? step_plain(form, text, left, wanted, used) : STEP_ENDS;
    int byte = text[1] == '0' && text[2] == '0' ? hex_byte(text + 3) : -1;
    *used = 5;
    if (byte >= 0 && is_same(form, byte, *wanted))
        return STEP_ON;
    if (byte == '\\' || (form->base64 && is_blank(byte)))
        return STEP_SKIP;
    return step_plain(form, text, left, wanted, used);
}

// Compares what stands at text with one byte of the form. *used: how much of the text that takes.
static enum step step(const struct secret_form *form, const char *text, size_t left, const unsigned char *wanted,
                      size_t *used)
{
    size_t backslashes = 0;
    while (backslashes < left && backslashes < MOST_BACKSLASHES && text[backslashes] == '\\')
        backslashes++;
    if (backslashes == left)
        return STEP_ENDS;
    if (backslashes == MOST_BACKSLASHES)
        return STEP_MISS;
    const char *next = text + backslashes;
    enum step outcome;
    if (backslashes && *next == 'u') {
        outcome = step_unicode(form, next, left - backslashes, wanted, used);
    } else if (backslashes && form->base64 && (*next == 'n' || *next == 'r')) {
        *used = 1;
        outcome = STEP_SKIP;
    } else {
        outcome = step_plain(form, next, left - backslashes, wanted, used);
    }
    *used += backslashes;
    return outcome;
}

size_t secret_ellipsis(const char *text, size_t size)
{
    return size >= 3 && (memcmp(text, "...", 3) == 0 || memcmp(text, "\xE2\x80\xA6", 3) == 0) ? 3 : 0;
}

// Whether the text goes on with "..." or "\n[... 5 bytes left out ...]".
static bool is_cut(const char *text, size_t size)
{
    size_t at = 0;
    at += at < size && text[at] == '\n';
    at += at < size && text[at] == '[';
    return secret_ellipsis(text + at, size - at) > 0;
}

// Where the text was cut before a character that does not fit: there, or just before, where a dot seemed to fit.
static bool find_cut(const char *text, size_t size, size_t at, size_t count, struct secret_match *match)
{
    for (size_t back = 0; back < 4 && back <= count; back++)
        if (is_cut(text + at - back, size - (at - back))) {
            *match = (struct secret_match){.end = at - back, .count = count - back};
            return true;
        }
    return false;
}

bool secret_form_matches(const struct secret_form *form, size_t from, const char *text, size_t size, size_t start,
                         struct secret_match *match)
{
    size_t at = start, count = 0;
    while (from + count < form->size) {
        size_t used;
        enum step outcome = at < size ? step(form, text + at, size - at, &form->bytes[from + count], &used) : STEP_ENDS;
        if (outcome == STEP_ENDS) {
            *match = (struct secret_match){.end = size, .count = count};
            return true;
        }
        if (outcome == STEP_MISS)
            return count >= form->telling && find_cut(text, size, at, count, match);
        if (outcome == STEP_SKIP && count == 0)
            return false;
        at += used;
        count += outcome == STEP_ON;
    }
    *match = (struct secret_match){.end = at, .count = count, .whole = true};
    return true;
}

static const char *hex_digits(unsigned value)
{
    static const char digits[16][3] = {"0", "1", "2",  "3",  "4",  "5",  "6",  "7",
                                       "8", "9", "aA", "bB", "cC", "dD", "eE", "fF"};
    return digits[value & 15];
}

// The other character that may stand for a byte of base64, or 0.
static unsigned char other(const struct secret_form *form, unsigned char byte)
{
    return !form->base64 ? 0 : byte == '+' ? '-' : byte == '/' ? '_' : 0;
}

void secret_form_firsts(const struct secret_form *form, bool firsts[256])
{
    unsigned char first = form->bytes[0], second = other(form, first);
    firsts[first] = true;
    if (second)
        firsts[second] = true;
}

bool secret_may_begin(const bool firsts[256], const char *text, size_t size)
{
    const char *at = text, *end = text + size;
    int byte = -1;
    if (*text == '%') {
        for (at++; end - at >= 2 && at[0] == '2' && at[1] == '5'; at += 2)
            ;
        byte = end - at >= 2 ? hex_byte(at) : -1;
    } else if (*text == '\\') {
        while (at < end && *at == '\\')
            at++;
        byte = end - at >= 5 && memcmp(at, "u00", 3) == 0 ? hex_byte(at + 3) : -1;
    }
    if (*text == '~')
        return firsts['~'] || firsts['/'];
    return (at < end && firsts[(unsigned char)(*text == '%' ? '%' : *at)]) || (byte >= 0 && firsts[byte]);
}

static void mark_one(const struct secret_form *form, size_t at, unsigned char first, secret_mark_pair *mark,
                     void *context)
{
    for (const char *digit = hex_digits(first >> 4); *digit; digit++)
        mark('%', (unsigned char)*digit, context);
    mark('\\', first, context);
    if (at + 1 >= form->size)
        return;
    unsigned char next = form->bytes[at + 1], next_other = other(form, next);
    mark(first, next, context);
    if (next_other)
        mark(first, next_other, context);
    mark(first, '%', context);
    mark(first, '\\', context);
    mark(first, '~', context);
    for (const char *blank = "\n\r \t"; form->base64 && *blank; blank++)
        mark(first, (unsigned char)*blank, context);
}

void secret_form_pairs(const struct secret_form *form, size_t at, secret_mark_pair *mark, void *context)
{
    unsigned char first = form->bytes[at], second = other(form, first);
    mark('%', '2', context);
    mark('~', '0', context);
    mark('~', '1', context);
    mark('\\', '\\', context);
    mark('\\', 'u', context);
    mark_one(form, at, first, mark, context);
    if (second)
        mark_one(form, at, second, mark, context);
}
