// SPDX-License-Identifier: Apache-2.0
// Blocks of every size keep their bytes as they grow and shrink, from malloc to a mapping and back.
#include "core/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { MIB = 1 << 20 };

static void fill(unsigned char *block, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        block[i] = (unsigned char)(i * 31 >> 4);
}

static void check(const unsigned char *block, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (block[i] != (unsigned char)(i * 31 >> 4))
            fail_msg("byte %zu is not what it was", i);
}

static void test_blocks_keep_their_bytes(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        1,           100,          MEMORY_LARGE - 1, MEMORY_LARGE, MEMORY_LARGE + 1, 6 * MIB,
        6 * MIB + 1, 40 * MIB + 7, MEMORY_LARGE,     33 * MIB,     3 * MIB,          5 * MIB,
        10,          20 * MIB,     MEMORY_LARGE - 1, 17,
    };
    unsigned char *block = NULL;
    size_t old_size = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block = memory_resize(block, old_size, sizes[i]);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 16, 0);
        check(block, old_size < sizes[i] ? old_size : sizes[i]);
        fill(block, 0, sizes[i]);
        old_size = sizes[i];
    }
    assert_null(memory_resize(block, old_size, 0));
}

static void test_what_cannot_be_had_leaves_the_block(void **state)
{
    (void)state;
    static const size_t sizes[] = {50, MEMORY_LARGE}, impossible[] = {SIZE_MAX / 2, SIZE_MAX - MIB, SIZE_MAX};
    for (size_t i = 0; i < 2; i++) {
        unsigned char *block = memory_resize(NULL, 0, sizes[i]);
        fill(block, 0, sizes[i]);
        for (size_t j = 0; j < 3; j++)
            assert_null(memory_resize(block, sizes[i], impossible[j]));
        check(block, sizes[i]);
        assert_null(memory_resize(block, sizes[i], 0));
    }
    assert_null(memory_resize(NULL, 0, SIZE_MAX));
    assert_null(memory_resize(NULL, 0, 0));
}

static void test_large_blocks_go_back_to_the_kernel(void **state)
{
    (void)state;
    unsigned char pages[2048]; // one for each of at most 8 MiB
    void *block = memory_resize(NULL, 0, 7 * MIB), *start = block;
    assert_int_equal(mincore(start, 8 * MIB, pages), 0);
    memory_resize(block, 7 * MIB, 0);
    assert_int_equal(mincore(start, 8 * MIB, pages), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_keep_their_bytes),
        cmocka_unit_test(test_what_cannot_be_had_leaves_the_block),
        cmocka_unit_test(test_large_blocks_go_back_to_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
