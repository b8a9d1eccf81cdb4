// SPDX-License-Identifier: Apache-2.0
// Memory by its size, see memory.h.
#include "core/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = MEMORY_LARGE };

// The kernel aligns a mapping for huge pages where it is a whole number of them.
static size_t mapping_size(size_t size)
{
    return (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
}

static void *take(size_t size)
{
    if (size < MEMORY_LARGE)
        return malloc(size);
    void *block = mmap(NULL, mapping_size(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return NULL;
    madvise(block, mapping_size(size), MADV_HUGEPAGE); // a wish: without, all is as before, but slower
    return block;
}

static void give(void *block, size_t size)
{
    if (size < MEMORY_LARGE)
        free(block);
    else
        munmap(block, mapping_size(size));
}

static void *resize_mapping(void *block, size_t old_size, size_t size)
{
    void *moved = mremap(block, mapping_size(old_size), mapping_size(size), MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? NULL : moved;
}

void *memory_resize(void *block, size_t old_size, size_t size)
{
    if (old_size >= MEMORY_LARGE && size >= MEMORY_LARGE)
        return resize_mapping(block, old_size, size);
    if (size > 0 && old_size < MEMORY_LARGE && size < MEMORY_LARGE)
        return realloc(block, size);
    void *fresh = size > 0 ? take(size) : NULL;
    if (size > 0 && !fresh)
        return NULL;
    if (fresh && block)
        memcpy(fresh, block, old_size < size ? old_size : size);
    give(block, old_size);
    return fresh;
}
