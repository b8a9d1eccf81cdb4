// SPDX-License-Identifier: Apache-2.0
// A growing run of bytes, see buffer.h.
#include "core/base/buffer.h"

int buffer_reserve(struct buffer *buffer, size_t extra)
{
    if (extra > SIZE_MAX / 2 - buffer->size)
        return -1;
    size_t wanted = buffer->size + extra;
    if (wanted <= buffer->capacity)
        return 0;
    size_t capacity = buffer->capacity + buffer->capacity / 2;
    if (capacity < wanted)
        capacity = wanted;
    char *data = realloc(buffer->data, capacity);
    if (!data)
        return -1;
    buffer->data = data;
    buffer->capacity = capacity;
    return 0;
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}
