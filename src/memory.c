// SPDX-License-Identifier: Apache-2.0
// Lua's allocator, see memory.h.
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// There are classes of sizes: STEP bytes apart up to SMALL, then FINER of them a doubling, up to 256 KiB.
enum { STEP = 16, SMALL = 2048, DOUBLINGS = 7, FINER = 4 };
enum { SMALL_CLASSES = SMALL / STEP + 1, CLASSES = SMALL_CLASSES + DOUBLINGS * FINER };
#ifdef NDEBUG
enum { LARGEST = SMALL << DOUBLINGS };
#else
enum { LARGEST = 0 };
#endif

// The first map is what a job of a few steps needs, and the kernel fills it at once.
enum { FIRST_MAP = 768 << 10, NEXT_MAP = 512 << 10 };

// The free blocks of a class: each begins with the next.
static void **free_blocks[CLASSES];

// What is left of the last map.
static char *rest, *rest_end;

// 1 to 16 bytes are class 1, 2,033 to 2,048 class 128, 2,049 to 2,560 class 129, 4,097 to 5,120 class 133.
static size_t class_of(size_t size)
{
    if (size <= SMALL)
        return (size + STEP - 1) / STEP;
    const unsigned quarter = 9; // SMALL is 1 << 11, a FINER part of it 1 << 9
    unsigned doubling = (unsigned)__builtin_clzl(SMALL) - (unsigned)__builtin_clzl(size - 1);
    return SMALL_CLASSES + doubling * FINER + ((size - 1) >> (quarter + doubling)) % FINER;
}

// The bytes of a block of the class.
static size_t size_of(size_t class)
{
    if (class < SMALL_CLASSES)
        return class * STEP;
    class -= SMALL_CLASSES;
    return (SMALL + SMALL / FINER * (class % FINER + 1)) << class / FINER;
}

// What the last map has left is given up: it is smaller than one block. Under a limit of memory a smaller map may fit.
static int map_more(size_t least)
{
    size_t size = rest ? NEXT_MAP : FIRST_MAP;
    do {
        void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (map != MAP_FAILED) {
            rest = map;
            rest_end = rest + size;
            return 0;
        }
        size /= 2;
    } while (size >= least);
    return -1;
}

static void *take(size_t size)
{
    if (size > LARGEST)
        return malloc(size);
    size_t class = class_of(size);
    void **block = free_blocks[class];
    if (block) {
        free_blocks[class] = *block;
        return block;
    }
    if ((size_t)(rest_end - rest) < size_of(class) && map_more(size_of(class)) < 0)
        return NULL;
    rest += size_of(class);
    return rest - size_of(class);
}

static void give(void **block, size_t size)
{
    if (!block || size > LARGEST) {
        free(block);
        return;
    }
    *block = free_blocks[class_of(size)];
    free_blocks[class_of(size)] = block;
}

void *memory_resize(void *block, size_t old_size, size_t size)
{
    if (size == 0) {
        give(block, old_size);
        return NULL;
    }
    if (!block)
        return take(size);
    if (old_size > LARGEST && size > LARGEST)
        return realloc(block, size);
    if (class_of(old_size) == class_of(size))
        return block;
    void *moved = take(size);
    if (moved) {
        memcpy(moved, block, old_size < size ? old_size : size);
        give(block, old_size);
    }
    return moved;
}
