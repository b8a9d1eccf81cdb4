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

// Not 0 where a byte of word must be escaped or is not ASCII. A false alarm is possible only beside a true one.
static inline uint64_t not_plain(uint64_t word)
{
    uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
    return ((word - ones * 0x20) | (quote - ones) | (backslash - ones) | word) & high_bits;
}

static inline bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

// Copies the bytes at the start that stand for themselves, a word at a time while there is one, and returns how many.
// There is room for all of them. No memcpy of the run: most runs are shorter than the call.
static size_t copy_plain(const char *bytes, size_t size, char *to)
{
    size_t i = 0;
    for (uint64_t word; i + sizeof word <= size; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        if (not_plain(word))
            break;
        memcpy(to + i, &word, sizeof word);
    }
    for (; i < size && is_plain((unsigned char)bytes[i]); i++)
        to[i] = bytes[i];
    return i;
}

static int append_escape(unsigned char byte, struct buffer *out)
{
    static const char from[] = "\"\\\n\t\r\b\f", to[] = "\"\\ntrbf";
    const char *short_form = byte ? strchr(from, byte) : NULL;
    char escape[] = {'\\', 'u', '0', '0', "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    if (short_form)
        escape[1] = to[short_form - from];
    return buffer_append(out, escape, short_form ? 2 : sizeof escape);
}

// Appends the character at the start, which is not plain. Returns how many bytes it has, 0 when memory is out.
static size_t append_special(const char *bytes, size_t size, struct buffer *out)
{
    if ((unsigned char)bytes[0] < 0x80)
        return append_escape((unsigned char)bytes[0], out) == 0;
    bool good;
    size_t length = text_character(bytes, size, &good);
    const char *from = good ? bytes : "\xEF\xBF\xBD";
    for (size_t i = 0; i < (good ? length : 3); i++)
        if (buffer_append_byte(out, from[i]) < 0)
            return 0;
    return length;
}

int json_quote(const char *bytes, size_t size, struct buffer *out)
{
    if (size > SIZE_MAX / 4 || buffer_reserve(out, size + 2) < 0)
        return -1;
    out->data[out->size++] = '"';
    for (size_t i = 0;;) {
        if (buffer_reserve(out, size - i + 1) < 0)
            return -1;
        size_t plain = copy_plain(bytes + i, size - i, out->data + out->size);
        out->size += plain;
        i += plain;
        if (i == size)
            break;
        size_t special = append_special(bytes + i, size - i, out);
        if (!special)
            return -1;
        i += special;
    }
    out->data[out->size++] = '"';
    return 0;
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

// Appends the character of a \u escape, given from its u on. Returns how long the escape is, 0 on failure.
static size_t append_unicode(const char *escape, size_t size, struct buffer *out)
{
    char utf8[4];
    size_t used = 5;
    int32_t code = size < used ? -1 : hex4(escape + 1);
    if (code >= 0xD800 && code < 0xE000) {
        int32_t low = code < 0xDC00 && size >= 11 && escape[5] == '\\' && escape[6] == 'u' ? hex4(escape + 7) : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return 0;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        used = 11;
    }
    if (code < 0)
        return 0;
    size_t length = encode_utf8(code, utf8);
    return buffer_append(out, utf8, length) < 0 ? 0 : used;
}

// Appends the character of an escape, given from after its backslash. Returns how long the escape is, 0 on failure.
static size_t append_unescaped(const char *escape, size_t size, struct buffer *out)
{
    static const char from[] = "\"\\/ntrbf", to[] = "\"\\/\n\t\r\b\f";
    if (size == 0 || *escape == '\0')
        return 0;
    if (*escape == 'u')
        return append_unicode(escape, size, out);
    const char *known = strchr(from, *escape);
    return known && buffer_append(out, &to[known - from], 1) == 0;
}

int json_unescape(const char *bytes, size_t size, struct buffer *out)
{
    const char *end = bytes + size;
    if (buffer_reserve(out, size) < 0)
        return -1;
    while (bytes < end) {
        const char *backslash = memchr(bytes, '\\', (size_t)(end - bytes));
        const char *stop = backslash ? backslash : end;
        buffer_append(out, bytes, (size_t)(stop - bytes)); // has room: never longer than what it was made of
        bytes = stop;
        if (!backslash)
            break;
        size_t used = append_unescaped(bytes + 1, (size_t)(end - bytes - 1), out);
        if (!used)
            return -1;
        bytes += 1 + used;
    }
    return 0;
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
