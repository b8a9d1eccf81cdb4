// SPDX-License-Identifier: Apache-2.0
// Copies of bytes, see copy.h. What is copied in one step is loaded before it is stored, so that the two places may
// overlap.
#include "core/copy.h"

#include <stdint.h>

typedef unsigned char block __attribute__((vector_size(16)));

enum { STRIDE = 64 };

static inline block load(const char *from)
{
    block bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return bytes;
}

static inline void store(char *to, block bytes)
{
    __builtin_memcpy(to, &bytes, sizeof bytes);
}

static inline void copy_stride(char *to, const char *from)
{
    block a = load(from), b = load(from + 16), c = load(from + 32), d = load(from + 48);
    store(to, a);
    store(to + 16, b);
    store(to + 32, c);
    store(to + 48, d);
}

// As many bytes at each end as a type has; the two may overlap.
#define COPY_ENDS(type)                                                                                                \
    do {                                                                                                               \
        type first, last;                                                                                              \
        __builtin_memcpy(&first, from, sizeof first);                                                                  \
        __builtin_memcpy(&last, from + size - sizeof last, sizeof last);                                               \
        __builtin_memcpy(to, &first, sizeof first);                                                                    \
        __builtin_memcpy(to + size - sizeof last, &last, sizeof last);                                                 \
    } while (0)

// Up to a stride.
static inline void copy_rest(char *to, const char *from, size_t size)
{
    if (size > 2 * sizeof(block)) {
        block a = load(from), b = load(from + 16), c = load(from + size - 32), d = load(from + size - 16);
        store(to, a);
        store(to + 16, b);
        store(to + size - 32, c);
        store(to + size - 16, d);
    } else if (size >= sizeof(block))
        COPY_ENDS(block);
    else if (size >= sizeof(uint64_t))
        COPY_ENDS(uint64_t);
    else if (size >= sizeof(uint32_t))
        COPY_ENDS(uint32_t);
    else if (size >= sizeof(uint16_t))
        COPY_ENDS(uint16_t);
    else if (size)
        *to = *from;
}

static inline void copy_forwards(char *to, const char *from, size_t size)
{
    for (; size > STRIDE; size -= STRIDE, to += STRIDE, from += STRIDE)
        copy_stride(to, from);
    copy_rest(to, from, size);
}

static inline void copy_backwards(char *to, const char *from, size_t size)
{
    for (; size > STRIDE; size -= STRIDE)
        copy_stride(to + size - STRIDE, from + size - STRIDE);
    copy_rest(to, from, size);
}

void *copy_apart(void *restrict to, const void *restrict from, size_t size)
{
    copy_forwards(to, from, size);
    return to;
}

void *copy_over(void *to, const void *from, size_t size)
{
    if ((uintptr_t)to - (uintptr_t)from >= size)
        copy_forwards(to, from, size);
    else
        copy_backwards(to, from, size);
    return to;
}

#ifdef SBA_COPIES_OF_ALL
// The linker finds these before those of the C library.
void *memcpy(void *restrict to, const void *restrict from, size_t size) __attribute__((alias("copy_apart")));
void *memmove(void *to, const void *from, size_t size) __attribute__((alias("copy_over")));
#endif
