// SPDX-License-Identifier: Apache-2.0
// Memory for Lua, see allocator.h.
#include "core/allocator.h"

#include "core/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Sizes up to FINE have a list for each UNIT, those up to SMALL four for each power of two.
enum { UNIT = 16, FINE_BITS = 9, FINE = 1 << FINE_BITS, SMALL_BITS = 15, SMALL = 1 << SMALL_BITS };
// What is kept back for the end: as much as the small blocks take, within these. It is never touched, so takes no
// memory.
enum { LEAST_RESERVE = 1 << 20, MOST_RESERVE = 16 << 20, LEAST_LEFT = 64 << 10 };
enum { FINE_CLASSES = FINE / UNIT, CLASSES = FINE_CLASSES + 4 * (SMALL_BITS - FINE_BITS) };
enum { LEAST_CHUNK = 320 << 10, SCARCE_CHUNK = 64 << 10 };

struct block {
    struct block *next;
};

static struct block *free_blocks[CLASSES];
static char *chunk, *chunk_end; // what is left of the last chunk
static size_t in_chunks;
static char *reserve;
static size_t reserve_size;
static bool reserve_spent;

// The class of a size, and how much its blocks hold.
static size_t class_of(size_t *size)
{
    if (*size <= FINE) {
        size_t class = (*size - 1) / UNIT;
        *size = (class + 1) * UNIT;
        return class;
    }
    int bits = 63 - __builtin_clzll(*size - 1);
    size_t quarter = (*size - 1) >> (bits - 2); // 4 to 7
    *size = (quarter + 1) << (bits - 2);
    return FINE_CLASSES + (size_t)(bits - FINE_BITS) * 4 + quarter - 4;
}

static void *new_mapping(size_t size, int flags)
{
    void *fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return fresh == MAP_FAILED ? NULL : fresh;
}

// Before another chunk is taken. False: it would be at the cost of the end.
static bool keep_reserve(void)
{
    if (reserve_spent || in_chunks < reserve_size || reserve_size == MOST_RESERVE)
        return true;
    size_t size = reserve ? reserve_size * 2 : LEAST_RESERVE;
    void *grown = reserve ? mremap(reserve, reserve_size, size, MREMAP_MAYMOVE) : new_mapping(size, 0);
    if (!grown || grown == MAP_FAILED)
        return false;
    reserve = grown;
    reserve_size = size;
    return true;
}

void allocator_spend_reserve(void)
{
    size_t left = reserve_size > LEAST_LEFT ? reserve_size / 4 : 0;
    if (reserve_size > 0)
        munmap(reserve + left, reserve_size - left);
    reserve_size = left;
    reserve_spent = true;
}

// Every start fills the first one: its pages come at once, not each by a fault. From the third on they are huge pages,
// unless there is no room for one.
static bool add_chunk(void)
{
    if (!keep_reserve())
        return false;
    size_t size = in_chunks < 2 * LEAST_CHUNK ? LEAST_CHUNK : MEMORY_LARGE;
    void *fresh = size < MEMORY_LARGE ? new_mapping(size, chunk ? 0 : MAP_POPULATE) : memory_resize(NULL, 0, size);
    if (!fresh)
        fresh = new_mapping(size = SCARCE_CHUNK, 0);
    if (!fresh)
        return false;
    chunk = fresh; // what is left of the old one is lost: less than SMALL
    chunk_end = chunk + size;
    in_chunks += size;
    return true;
}

static void *take_small(size_t size)
{
    size_t class = class_of(&size);
    struct block *block = free_blocks[class];
    if (block) {
        free_blocks[class] = block->next;
        return block;
    }
    if ((size_t)(chunk_end - chunk) < size && !add_chunk())
        return NULL;
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
        size_t class = class_of(&size);
        block->next = free_blocks[class];
        free_blocks[class] = block;
    }
}

static bool is_same_class(size_t a, size_t b)
{
    return class_of(&a) == class_of(&b);
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
    if (old_size > 0 && old_size <= SMALL && size <= SMALL && is_same_class(old_size, size))
        return block;
    void *fresh = size > SMALL ? memory_resize(NULL, 0, size) : take_small(size);
    if (fresh && old_size > 0) {
        memcpy(fresh, block, old_size < size ? old_size : size);
        give(block, old_size);
    }
    return fresh;
}
