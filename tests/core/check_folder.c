// SPDX-License-Identifier: Apache-2.0
// See check_folder.h.
#include "check_folder.h"

#include <sys/stat.h>

char folder[] = "/tmp/sba-test-XXXXXX";

int make_folder(void **state)
{
    return mkdtemp(folder) && chmod(folder, 0755) == 0 ? 0 : -1;
}

int remove_folder(void **state)
{
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

const char *in_folder(const char *name)
{
    static char path[sizeof folder + 256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void put(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    assert_int_equal(fclose(file), 0);
}
