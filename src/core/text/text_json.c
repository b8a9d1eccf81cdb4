// SPDX-License-Identifier: Apache-2.0
// Text in JSON strings, and how many values a JSON text holds, see text.h.
#include "core/text/text.h"

#include <stdint.h>
#include <string.h>

// Whether one of eight bytes may be a quote or a backslash; sure where it says no.
static inline bool may_end_plain(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, high_bits = ones * 0x80;
    return (((word ^ ones * '"') - ones) | ((word ^ ones * '\\') - ones)) & high_bits;
}

int text_json_append(const char *utf8, size_t size, struct buffer *out)
{
    static const char letters[] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu", digits[] = "0123456789abcdef";
    size_t done = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)utf8[i];
        if (c >= ' ' && c != '"' && c != '\\')
            continue;
        char letter = c < ' ' ? letters[c] : utf8[i];
        char escape[] = {'\\', letter, '0', '0', digits[c >> 4], digits[c & 15]};
        if (buffer_append(out, utf8 + done, i - done) < 0 || buffer_append(out, escape, letter == 'u' ? 6 : 2) < 0)
            return -1;
        done = i + 1;
    }
    return buffer_append(out, utf8 + done, size - done);
}

// The offset of the quote that ends the string at `at`. Passes over eight plain bytes at once.
static size_t skip_string(const char *bytes, size_t size, size_t at)
{
    for (at++; at < size && bytes[at] != '"'; at++) {
        at += bytes[at] == '\\';
        for (uint64_t word; at + sizeof word < size; at += sizeof word) {
            memcpy(&word, bytes + at + 1, sizeof word);
            if (may_end_plain(word))
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
