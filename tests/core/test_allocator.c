// SPDX-License-Identifier: Apache-2.0
// Memory for Lua: blocks of every size keep their bytes while others come and go, and small ones are used again.
#include "core/allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { BLOCKS = 500, ROUNDS = 200000 };

static void check_and_fill(unsigned char *block, size_t kept, size_t size, unsigned char old, unsigned char fresh)
{
    for (size_t i = 0; i < kept; i++)
        assert_int_equal(block[i], old);
    memset(block, fresh, size);
}

static void test_blocks_keep_their_bytes(void **state)
{
    (void)state;
    static struct {
        unsigned char *block;
        size_t size;
        unsigned char value;
    } held[BLOCKS];
    srand(3);
    for (int round = 0; round < ROUNDS; round++) {
        size_t i = (size_t)rand() % BLOCKS, before = held[i].size;
        size_t size = rand() % 4 ? (size_t)rand() % 600 : rand() % 2 ? 0 : (size_t)rand() % 12000;
        unsigned char value = (unsigned char)rand();
        // While there is no block, the old size tells its kind, as Lua has it.
        unsigned char *block = allocator(NULL, held[i].block, held[i].block ? before : 5, size);
        assert_int_equal(block == NULL, size == 0);
        assert_int_equal((uintptr_t)block % 16, 0);
        if (block)
            check_and_fill(block, before < size ? before : size, size, held[i].value, value);
        held[i].block = block;
        held[i].size = size;
        held[i].value = value;
    }
    for (size_t i = 0; i < BLOCKS; i++)
        allocator(NULL, held[i].block, held[i].size, 0);
}

static void test_small_blocks_are_used_again(void **state)
{
    (void)state;
    void *first = allocator(NULL, NULL, 0, 40), *second;
    allocator(NULL, first, 40, 0);
    second = allocator(NULL, NULL, 0, 33);
    assert_ptr_equal(first, second);
    assert_ptr_equal(allocator(NULL, second, 33, 48), second);
    allocator(NULL, second, 48, 0);
}

// What the process has of what RLIMIT_DATA counts.
static size_t data_size(void)
{
    char line[256];
    size_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    assert_non_null(status);
    while (fgets(line, sizeof line, status))
        sscanf(line, "VmData: %zu kB", &kib);
    fclose(status);
    return kib << 10;
}

static size_t take_all(void)
{
    enum { SIZE = 4096 };
    size_t taken = 0;
    while (allocator(NULL, NULL, 0, SIZE))
        taken += SIZE;
    return taken;
}

static void test_as_much_as_is_in_use_is_kept_for_the_end(void **state)
{
    (void)state;
    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    tight = before;
    tight.rlim_cur = data_size() + (12 << 20);
    assert_int_equal(setrlimit(RLIMIT_DATA, &tight), 0);
    size_t first = take_all();
    assert_true(first >= 3 << 20);
    assert_int_equal(take_all(), 0);
    for (size_t next = first / 2; next > 512 << 10; next /= 4) {
        allocator_spend_reserve();
        assert_true(take_all() >= next);
    }
    for (int i = 0; i < 100; i++)
        allocator_spend_reserve();
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_keep_their_bytes),
        cmocka_unit_test(test_small_blocks_are_used_again),
        cmocka_unit_test(test_as_much_as_is_in_use_is_kept_for_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
