// SPDX-License-Identifier: Apache-2.0
// See check.h.
#include "check.h"

#include <sys/stat.h>

char directory[] = "/tmp/sba-test-XXXXXX";

int make_directory(void **state)
{
    return mkdtemp(directory) && chmod(directory, 0755) == 0 ? 0 : -1;
}

int remove_directory(void **state)
{
    char command[sizeof directory + 16];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

const char *in_directory(const char *name)
{
    static char path[sizeof directory + 256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

void put(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    assert_int_equal(fclose(file), 0);
}

void check_bytes(const struct buffer *got, const char *wanted, size_t size)
{
    assert_int_equal(got->size, size);
    if (size > 0)
        assert_memory_equal(got->data, wanted, size);
}
