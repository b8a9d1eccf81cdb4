// SPDX-License-Identifier: Apache-2.0
// Finds parts of a text and counts its lines, see text.h.
#include "core/text/text.h"

#include <stdint.h>
#include <string.h>

typedef unsigned char block __attribute__((vector_size(16)));

static inline block load(const char *bytes)
{
    block loaded;
    memcpy(&loaded, bytes, sizeof loaded);
    return loaded;
}

static inline block fill(char byte)
{
    return (block){0} + (unsigned char)byte;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");

const char *text_find_byte(const char *bytes, size_t size, char byte)
{
    block wanted = fill(byte);
    for (; size >= sizeof(block); bytes += sizeof(block), size -= sizeof(block)) {
        block same = (block)(load(bytes) == wanted);
        uint64_t halves[2];
        memcpy(halves, &same, sizeof halves);
        if (halves[0] | halves[1])
            return bytes + (halves[0] ? __builtin_ctzll(halves[0]) : 64 + __builtin_ctzll(halves[1])) / 8;
    }
    return memchr(bytes, byte, size);
}

// Checks 16 places at once for the first and the last byte, and compares the rest only where both match. After it has
// compared as many bytes as the text has, memmem takes over: it is slower, but linear.
const char *text_find(const char *bytes, size_t size, const char *part, size_t part_size)
{
    if (part_size < 2 || part_size > size)
        return memmem(bytes, size, part, part_size);
    block first = fill(part[0]), last = fill(part[part_size - 1]);
    size_t at = 0, compared = 0;
    for (; at + part_size - 1 + sizeof(block) <= size && compared <= size; at += sizeof(block)) {
        block fits = (block)((load(bytes + at) == first) & (load(bytes + at + part_size - 1) == last));
        uint64_t halves[2];
        memcpy(halves, &fits, sizeof halves);
        if (!(halves[0] | halves[1]))
            continue;
        for (size_t i = 0; i < sizeof(block); i++) {
            if (!fits[i])
                continue;
            if (memcmp(bytes + at + i + 1, part + 1, part_size - 2) == 0)
                return bytes + at + i;
            compared += part_size;
        }
    }
    return memmem(bytes + at, size - at, part, part_size);
}

// Goes over blocks of constant size, so that the compiler vectorizes the loop.
size_t text_count_newlines(const char *bytes, size_t size)
{
    enum { BLOCK = 192 };
    size_t count = 0;
    for (; size >= BLOCK; bytes += BLOCK, size -= BLOCK) {
        unsigned char few = 0; // at most BLOCK
        for (size_t i = 0; i < BLOCK; i++)
            few = (unsigned char)(few + (bytes[i] == '\n'));
        count += few;
    }
    for (size_t i = 0; i < size; i++)
        count += bytes[i] == '\n';
    return count;
}
