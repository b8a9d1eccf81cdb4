// SPDX-License-Identifier: Apache-2.0
// replace FILE: writes a file as the runner leaves its result: a temporary file, fsync, rename, fsync of the directory.
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char content[600], temporary[4096];
    if (argc < 2)
        return 2;
    memset(content, ' ', sizeof content);
    snprintf(temporary, sizeof temporary, "%s.tmp", argv[1]);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (write(fd, content, sizeof content) != sizeof content || fsync(fd) < 0 || rename(temporary, argv[1]) < 0)
        return 1;
    int directory = open(dirname(argv[1]), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fsync(directory) < 0;
}
