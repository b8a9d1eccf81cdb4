// SPDX-License-Identifier: Apache-2.0
// JSON text of strings and numbers, see json.h.
#include "core/json.h"

#include "core/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t ones = 0x0101010101010101u;
static const uint64_t high_bits = 0x8080808080808080u;

// The first byte that must be escaped or is not ASCII is the one with the lowest bit that is set; 0: there is none. A
// false alarm is possible only in a byte after it: the borrow of a subtraction goes that way.
static inline uint64_t not_plain(uint64_t word)
{
    uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
    return ((word - ones * 0x20) | (quote - ones) | (backslash - ones) | word) & high_bits;
}

static inline bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte of a word is its lowest");

// Copies the bytes at the start that stand for themselves, a word at a time while there is one, and returns how many.
// There is room for all of them. No memcpy of the run: most runs are shorter than the call.
static inline size_t copy_plain(const char *bytes, size_t size, char *to)
{
    size_t i = 0;
    for (uint64_t word; i + sizeof word <= size; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        memcpy(to + i, &word, sizeof word);
        uint64_t found = not_plain(word);
        if (found)
            return i + (size_t)__builtin_ctzll(found) / 8;
    }
    for (; i < size && is_plain((unsigned char)bytes[i]); i++)
        to[i] = bytes[i];
    return i;
}

enum { LONGEST_ESCAPE = 6 };

// Writes the escape of an ASCII character that is not plain, and returns its length.
static inline size_t put_escape(unsigned char byte, char *to)
{
    static const char letters[] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu"; // of the control characters
    to[0] = '\\';
    to[1] = byte < 0x20 ? letters[byte] : (char)byte;
    if (to[1] != 'u')
        return 2;
    to[2] = to[3] = '0';
    to[4] = (char)('0' + (byte >> 4));
    to[5] = "0123456789abcdef"[byte & 15];
    return LONGEST_ESCAPE;
}

// Copies the character at the start, which is not ASCII, or U+FFFD where it is none. *used is how long it is. Returns
// how many bytes were written.
static size_t put_character(const char *bytes, size_t size, size_t *used, char *to)
{
    bool good;
    *used = text_character(bytes, size, &good);
    size_t written = good ? *used : 3;
    memcpy(to, good ? bytes : "\xEF\xBF\xBD", written);
    return written;
}

int json_quote(const char *bytes, size_t size, struct buffer *out)
{
    if (size > SIZE_MAX / 4 || buffer_reserve(out, size + 2) < 0)
        return -1;
    out->data[out->size++] = '"';
    for (size_t i = 0;;) {
        size_t room = size - i + LONGEST_ESCAPE + 1;
        if (out->capacity - out->size < room && buffer_reserve(out, room) < 0)
            return -1;
        size_t plain = copy_plain(bytes + i, size - i, out->data + out->size);
        out->size += plain;
        i += plain;
        if (i == size)
            break;
        size_t used = 1;
        if ((unsigned char)bytes[i] < 0x80)
            out->size += put_escape((unsigned char)bytes[i], out->data + out->size);
        else
            out->size += put_character(bytes + i, size - i, &used, out->data + out->size);
        i += used;
    }
    out->data[out->size++] = '"';
    return 0;
}

// Not 0 where a byte of word is a control character, a quote or a backslash. Exact, but not about which byte it is.
static inline uint64_t ends_run(uint64_t word)
{
    uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
    return (((word - ones * 0x20) & ~word) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) & high_bits;
}

size_t json_plain_span(const char *bytes, size_t size)
{
    size_t i = 0;
    for (uint64_t word; i + sizeof word <= size; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        if (ends_run(word))
            break;
    }
    while (i < size && (unsigned char)bytes[i] >= 0x20 && bytes[i] != '"' && bytes[i] != '\\')
        i++;
    return i;
}

// The value of four hex digits, or -1.
static int32_t hex4(const char *digits)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int c = (unsigned char)digits[i], letter = c | 0x20;
        int digit = c >= '0' && c <= '9' ? c - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static size_t encode_utf8(int32_t code, char utf8[4])
{
    static const unsigned char marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        utf8[i] = (char)(0x80 | (code & 0x3F));
    utf8[0] = (char)(marks[length] | code);
    return length;
}

// Reads a \u escape, given from its u on, two of them for a surrogate pair. Returns how long it is, 0 if it is bad.
static size_t read_unicode(const char *escape, size_t size, int32_t *code)
{
    *code = size < 5 ? -1 : hex4(escape + 1);
    if (*code < 0xD800 || *code > 0xDFFF)
        return *code < 0 ? 0 : 5;
    int32_t low = *code < 0xDC00 && size >= 11 && escape[5] == '\\' && escape[6] == 'u' ? hex4(escape + 7) : -1;
    if (low < 0xDC00 || low > 0xDFFF)
        return 0;
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return 11;
}

// Writes the character of an escape, given from after its backslash; never longer than the escape. Returns how long the
// escape is, 0 if it is bad.
static size_t unescape_one(const char *escape, size_t size, struct buffer *out)
{
    static const char meanings[256] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['n'] = '\n', ['t'] = '\t', ['r'] = '\r', ['b'] = '\b', ['f'] = '\f'};
    if (size > 0 && *escape == 'u') {
        int32_t code;
        size_t used = read_unicode(escape, size, &code);
        if (used)
            out->size += encode_utf8(code, out->data + out->size);
        return used;
    }
    char meaning = size > 0 ? meanings[(unsigned char)*escape] : 0;
    if (!meaning)
        return 0;
    out->data[out->size++] = meaning;
    return 1;
}

size_t json_unescape(const char *bytes, size_t size, struct buffer *out, bool *out_of_memory)
{
    *out_of_memory = buffer_reserve(out, size) < 0; // the text is never longer than what it is written as
    if (*out_of_memory)
        return 0;
    for (size_t i = 0; i < size;) {
        const char *backslash = memchr(bytes + i, '\\', size - i);
        size_t plain = (backslash ? (size_t)(backslash - bytes) : size) - i;
        memcpy(out->data + out->size, bytes + i, plain);
        out->size += plain;
        i += plain;
        if (i == size)
            break;
        size_t used = unescape_one(bytes + i + 1, size - i - 1, out);
        if (!used)
            return i;
        i += 1 + used;
    }
    return size;
}

// The end of a string that begins at bytes, after its quote: the quote that closes it, or end.
static const char *string_end(const char *bytes, const char *end)
{
    const char *quote = bytes;
    while (quote < end && (quote = memchr(quote, '"', (size_t)(end - quote)))) {
        size_t backslashes = 0;
        while (quote - backslashes > bytes && quote[-1 - (ptrdiff_t)backslashes] == '\\')
            backslashes++;
        if (backslashes % 2 == 0)
            return quote;
        quote++;
    }
    return end;
}

size_t json_count(const char *bytes, size_t size)
{
    size_t count = 1;
    for (const char *at = bytes, *end = bytes + size; at < end; at++) {
        if (*at == '"') {
            at = string_end(at + 1, end);
            if (at == end)
                break;
        } else {
            count += *at == ',' || *at == ':' || *at == '[' || *at == '{';
        }
    }
    return count;
}

int json_integer(int64_t value, struct buffer *out)
{
    char digits[20], *first = digits + sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--first = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--first = '-';
    return buffer_append(out, first, (size_t)(digits + sizeof digits - first));
}

int json_float(double value, struct buffer *out)
{
    char text[40];
    if (value > -1e17 && value < 1e17 && value == (double)(int64_t)value) {
        snprintf(text, sizeof text, "%.1f", value);
        return buffer_append(out, text, strlen(text));
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return buffer_append(out, text, strlen(text));
}
