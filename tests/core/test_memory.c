// SPDX-License-Identifier: Apache-2.0
// Lua's allocator, compiled as in a release: blocks keep their bytes, overlap nowhere and are used again, and what a
// limit of memory leaves is used.
#include "memory.h"

#include "check.h"

#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { BLOCKS = 2000, STEPS = 400000, LARGEST_TRIED = 300000 };

struct block {
    unsigned char *bytes;
    size_t size;
    unsigned char filling;
};

static uint32_t next_random(void)
{
    static uint32_t state = 12345;
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

static void fill(struct block *block)
{
    block->filling = (unsigned char)next_random();
    if (block->size)
        memset(block->bytes, block->filling, block->size);
}

static void check_filling(const struct block *block, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (block->bytes[i] != block->filling)
            fail_msg("byte %zu of a block of %zu is another's", i, block->size);
}

// Mostly small, as Lua's are.
static size_t some_size(void)
{
    uint32_t kind = next_random() % 100;
    return kind < 10   ? 0
           : kind < 90 ? next_random() % 300
           : kind < 99 ? next_random() % 5000
                       : next_random() % LARGEST_TRIED;
}

static void test_blocks_keep_their_bytes(void **state)
{
    static struct block blocks[BLOCKS];
    for (int step = 0; step < STEPS; step++) {
        struct block *block = &blocks[next_random() % BLOCKS];
        size_t size = some_size(), kept = size < block->size ? size : block->size;
        block->bytes = memory_resize(block->bytes, block->size, size);
        assert_int_equal((uintptr_t)block->bytes % 16, 0);
        assert_true(size == 0 || block->bytes);
        check_filling(block, kept);
        block->size = size;
        fill(block);
    }
    for (int i = 0; i < BLOCKS; i++) {
        check_filling(&blocks[i], blocks[i].size);
        assert_null(memory_resize(blocks[i].bytes, blocks[i].size, 0));
    }
}

// Each size, up to beyond the largest that is cut from maps: all of its bytes are the block's own.
static void test_every_size(void **state)
{
    for (size_t size = 1; size < LARGEST_TRIED; size += 1 + size / 100) {
        struct block one = {memory_resize(NULL, 0, size), size, 0}, two = {memory_resize(NULL, 0, size), size, 0};
        fill(&one);
        fill(&two);
        check_filling(&one, size);
        one.bytes = memory_resize(one.bytes, size, size + 1);
        check_filling(&one, size);
        memory_resize(one.bytes, size + 1, 0);
        check_filling(&two, size);
        memory_resize(two.bytes, size, 0);
    }
}

static void test_what_is_freed_is_used_again(void **state)
{
    void *first = memory_resize(NULL, 0, 1000);
    memory_resize(first, 1000, 0);
    assert_ptr_equal(memory_resize(NULL, 0, 1001), first); // of the same class
    memory_resize(first, 1001, 0);
    assert_null(memory_resize(NULL, 0, 0));
}

// How many blocks there are to be had; they are freed again.
static int count_blocks(size_t size)
{
    static struct block blocks[BLOCKS];
    int count = 0;
    for (; count < BLOCKS && (blocks[count].bytes = memory_resize(NULL, 0, size)); count++) {
        blocks[count].size = size;
        fill(&blocks[count]);
    }
    for (int i = 0; i < count; i++) {
        check_filling(&blocks[i], size);
        memory_resize(blocks[i].bytes, size, 0);
    }
    return count;
}

static void limit_memory(size_t bytes)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu", &pages) != 1)
        _exit(1);
    fclose(file);
    const rlim_t limit = pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
    setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit});
}

// The first test: nothing is mapped yet, and a whole map does not fit.
static void test_what_a_limit_leaves_is_used(void **state)
{
    static const struct {
        size_t bytes, size;
        int least;
    } cases[] = {{300 << 10, 2000, 140}, {300 << 10, 100000, 1}, {8 << 10, 100, 40}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            limit_memory(cases[i].bytes);
            int count = count_blocks(cases[i].size);
            _exit(count < cases[i].least || count_blocks(cases[i].size) != count);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_limit_leaves_is_used), cmocka_unit_test(test_blocks_keep_their_bytes),
        cmocka_unit_test(test_every_size), cmocka_unit_test(test_what_is_freed_is_used_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
