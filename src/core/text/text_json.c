// SPDX-License-Identifier: Apache-2.0
// Escapes text for JSON strings, and counts the values of a JSON text, see text.h.
#include "core/text/text.h"

#include <stdint.h>
#include <string.h>

static const uint64_t ones = 0x0101010101010101u;
static const uint64_t high_bits = 0x8080808080808080u;

// The lowest bit set marks the first byte that is not ASCII or needs an escape; 0: there is none. Higher bits may be
// wrong.
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

// Copies the bytes at the start that need no escape, eight at a time. Returns how many. There must be room for all.
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

// Writes the escape of an ASCII character that needs one. Returns its length.
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

// Copies the character at the start, which is not ASCII; writes U+FFFD if it is ill-formed. *used is its length.
// Returns how many bytes were written.
static size_t put_character(const char *bytes, size_t size, size_t *used, char *to)
{
    bool good;
    *used = text_character(bytes, size, &good);
    size_t written = good ? *used : 3;
    memcpy(to, good ? bytes : "\xEF\xBF\xBD", written);
    return written;
}

int text_json_escape(const char *bytes, size_t size, struct buffer *out)
{
    if (size > SIZE_MAX / 4)
        return -1;
    for (size_t i = 0;;) {
        size_t room = size - i + LONGEST_ESCAPE;
        if (out->capacity - out->size < room && buffer_reserve(out, room) < 0)
            return -1;
        size_t plain = copy_plain(bytes + i, size - i, out->data + out->size);
        out->size += plain;
        i += plain;
        if (i == size)
            return 0;
        size_t used = 1;
        if ((unsigned char)bytes[i] < 0x80)
            out->size += put_escape((unsigned char)bytes[i], out->data + out->size);
        else
            out->size += put_character(bytes + i, size - i, &used, out->data + out->size);
        i += used;
    }
}

size_t text_json_size(const char *utf8, size_t size)
{
    size_t total = size;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)utf8[i];
        if (c == '"' || c == '\\' || (c && c < ' ' && strchr("\b\t\n\f\r", c)))
            total += 1; // \n
        else if (c < ' ')
            total += 5; // \u0001
    }
    return total;
}

// The offset of the quote that ends the string at `at`. Passes over eight plain bytes at once.
static size_t skip_string(const char *bytes, size_t size, size_t at)
{
    for (at++; at < size && bytes[at] != '"'; at++) {
        at += bytes[at] == '\\';
        for (uint64_t word; at + sizeof word < size; at += sizeof word) {
            memcpy(&word, bytes + at + 1, sizeof word);
            if (not_plain(word))
                break;
        }
    }
    return at;
}

size_t text_json_past(const char *bytes, size_t size, size_t most)
{
    size_t count = 1;
    bool is_first = false; // an array or object has begun, and nothing of it
    for (size_t at = 0; at < size; at++) {
        char byte = bytes[at];
        if (byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r')
            continue;
        count += byte == ',' || (is_first && byte != ']' && byte != '}');
        if (count > most)
            return at;
        is_first = byte == '[' || byte == '{';
        if (byte == '"')
            at = skip_string(bytes, size, at);
    }
    return size;
}
