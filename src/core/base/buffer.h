// SPDX-License-Identifier: Apache-2.0
// A growing array of bytes. Not a C string: it may hold NULs and has no terminator.
#ifndef SBA_CORE_BUFFER_H
#define SBA_CORE_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    char *data; // owned; NULL before anything was reserved
    size_t size;
    size_t capacity;
};

static inline size_t size_least(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

// Makes room for `extra` more bytes at data + size. 0, or -1 if memory is out (the buffer is unchanged).
int buffer_reserve(struct buffer *buffer, size_t extra);

// Appends bytes. 0, or -1 if memory is out. Inline, so that the compiler copies a few bytes without a call.
static inline int buffer_append(struct buffer *buffer, const void *bytes, size_t size)
{
    if (size > buffer->capacity - buffer->size && buffer_reserve(buffer, size) < 0)
        return -1;
    if (size)
        memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
    return 0;
}

void buffer_free(struct buffer *buffer);

#define cleanup_buffer __attribute__((cleanup(buffer_free)))

// Makes room for one more item in an array of count items that only this function allocates. Returns the array; NULL
// when memory is out (the old one stays). Its capacity is the next power of two, so nobody has to keep it.
static inline void *array_grow(void *array, size_t count, size_t item_size)
{
    enum { FIRST = 16 };
    if (count > 0 && (count < FIRST || count & (count - 1)))
        return array;
    return realloc(array, (count ? 2 * count : FIRST) * item_size);
}

#endif
