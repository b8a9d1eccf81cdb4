// SPDX-License-Identifier: Apache-2.0
// A growing run of bytes. Not a C string: it may hold NULs and has no terminator.
#ifndef SBA_CORE_BUFFER_H
#define SBA_CORE_BUFFER_H

#include <stddef.h>

struct buffer {
    char *data; // owned; NULL when nothing was ever reserved
    size_t size;
    size_t capacity;
};

// Room for extra more bytes at data + size. 0, or -1 when memory is out (the buffer is then as before).
int buffer_reserve(struct buffer *buffer, size_t extra);

// Appends bytes. 0, or -1 when memory is out.
int buffer_append(struct buffer *buffer, const void *bytes, size_t size);

static inline int buffer_append_byte(struct buffer *buffer, char byte)
{
    if (buffer->size == buffer->capacity && buffer_reserve(buffer, 1) < 0)
        return -1;
    buffer->data[buffer->size++] = byte;
    return 0;
}

void buffer_free(struct buffer *buffer);

#define cleanup_buffer __attribute__((cleanup(buffer_free)))

#endif
