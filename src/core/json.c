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

// How many of the bytes at the start stand for themselves.
static size_t plain_span(const char *bytes, size_t size)
{
    size_t i = 0;
    for (; i + 16 <= size; i += 16) {
        uint64_t words[2];
        memcpy(words, bytes + i, sizeof words);
        if (not_plain(words[0]) | not_plain(words[1]))
            break;
    }
    while (i < size && is_plain((unsigned char)bytes[i]))
        i++;
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
    int status = good ? buffer_append(out, bytes, length) : buffer_append(out, "\xEF\xBF\xBD", 3);
    return status == 0 ? length : 0;
}

int json_quote(const char *bytes, size_t size, struct buffer *out)
{
    if (size > SIZE_MAX / 4 || buffer_reserve(out, size + 2) < 0)
        return -1;
    out->data[out->size++] = '"';
    for (size_t i = 0; i < size;) {
        size_t plain = plain_span(bytes + i, size - i);
        if (buffer_append(out, bytes + i, plain) < 0)
            return -1;
        i += plain;
        if (i == size)
            break;
        size_t special = append_special(bytes + i, size - i, out);
        if (!special)
            return -1;
        i += special;
    }
    return buffer_append(out, "\"", 1);
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
