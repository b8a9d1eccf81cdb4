// SPDX-License-Identifier: Apache-2.0
// Memory for Lua, see allocator.h.
#include "core/allocator.h"

#include "core/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { UNIT = 16, SMALL = 512, CLASSES = SMALL / UNIT, CHUNK = 256 << 10 };

struct block {
    struct block *next;
};

static struct block *free_blocks[CLASSES];
static char *chunk, *chunk_end; // what is left of the last chunk

static size_t class_of(size_t size)
{
    return (size - 1) / UNIT;
}

// Every start fills the first one: its pages come at once, not each by a fault.
static char *new_chunk(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (chunk ? 0 : MAP_POPULATE);
    void *fresh = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, flags, -1, 0);
    return fresh == MAP_FAILED ? NULL : fresh;
}

static void *take_small(size_t size)
{
    size_t class = class_of(size);
    struct block *block = free_blocks[class];
    if (block) {
        free_blocks[class] = block->next;
        return block;
    }
    size = (class + 1) * UNIT;
    if ((size_t)(chunk_end - chunk) < size) { // what is left of the old one is lost: less than SMALL
        char *fresh = new_chunk();
        if (!fresh)
            return NULL;
        chunk = fresh;
        chunk_end = fresh + CHUNK;
    }
    void *taken = chunk;
    chunk += size;
    return taken;
}

static void give(void *memory, size_t size)
{
    struct block *block = memory;
    if (size > SMALL) {
        memory_resize(memory, size, 0);
    } else if (size > 0) {
        block->next = free_blocks[class_of(size)];
        free_blocks[class_of(size)] = block;
    }
}

void *allocator(void *unused, void *block, size_t old_size, size_t size)
{
    (void)unused;
    if (!block)
        old_size = 0; // it says what the block is for
    if (size == 0) {
        give(block, old_size);
        return NULL;
    }
    if (old_size > SMALL && size > SMALL)
        return memory_resize(block, old_size, size);
    if (old_size > 0 && old_size <= SMALL && size <= SMALL && class_of(old_size) == class_of(size))
        return block;
    void *fresh = size > SMALL ? memory_resize(NULL, 0, size) : take_small(size);
    if (fresh && old_size > 0) {
        memcpy(fresh, block, old_size < size ? old_size : size);
        give(block, old_size);
    }
    return fresh;
}
