// SPDX-License-Identifier: Apache-2.0
// core/copy.h against the C library, for every size up to several strides, at every distance and alignment.
#include "check.h"
#include "core/copy.h"

#include <string.h>

enum { LONGEST = 300, MOST_APART = 160, PLACE = 2 * LONGEST };

static void fill(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 31 + i / 256);
}

static void copies_what_lies_apart(void **state)
{
    unsigned char from[PLACE], ours[PLACE], theirs[PLACE];
    fill(from, sizeof from);
    for (size_t size = 0; size <= LONGEST; size++) {
        for (size_t start = 0; start < 17; start++) {
            memset(ours, 0xEE, sizeof ours);
            memset(theirs, 0xEE, sizeof theirs);
            assert_ptr_equal(copy_apart(ours + 16 - start, from + start, size), ours + 16 - start);
            memcpy(theirs + 16 - start, from + start, size);
            assert_memory_equal(ours, theirs, sizeof ours);
        }
    }
}

static void copies_what_overlaps(void **state)
{
    unsigned char ours[PLACE], theirs[PLACE];
    for (size_t size = 0; size <= LONGEST; size++) {
        for (size_t apart = 0; apart < MOST_APART; apart++) {
            fill(ours, sizeof ours);
            fill(theirs, sizeof theirs);
            assert_ptr_equal(copy_over(ours + apart, ours, size), ours + apart);
            memmove(theirs + apart, theirs, size);
            assert_memory_equal(ours, theirs, sizeof ours);
            copy_over(ours, ours + apart, size);
            memmove(theirs, theirs + apart, size);
            assert_memory_equal(ours, theirs, sizeof ours);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_what_lies_apart),
        cmocka_unit_test(copies_what_overlaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
