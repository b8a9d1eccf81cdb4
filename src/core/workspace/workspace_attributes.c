// SPDX-License-Identifier: Apache-2.0
// What a new file takes over from the one whose place it gets, see workspace_internal.h.
#include "core/base/cleanup.h"
#include "core/workspace/workspace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

// One extended attribute; access lists are some. What the user may not set stays behind.
static void copy_attribute(int from, int to, const char *name)
{
    ssize_t size = fgetxattr(from, name, NULL, 0);
    if (size < 0)
        return;
    cleanup_free char *value = malloc((size_t)size + 1);
    if (value && (size = fgetxattr(from, name, value, (size_t)size)) >= 0)
        fsetxattr(to, name, value, (size_t)size, 0);
}

static void copy_attributes(int from, int to)
{
    ssize_t size = flistxattr(from, NULL, 0);
    if (size <= 0)
        return;
    cleanup_free char *names = malloc((size_t)size);
    if (!names || (size = flistxattr(from, names, (size_t)size)) <= 0)
        return;
    for (const char *name = names; name < names + size; name += strlen(name) + 1)
        copy_attribute(from, to, name);
}

void workspace_keep_attributes(int fd, int directory, const char *name)
{
    struct stat was;
    if (fstatat(directory, name, &was, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(was.st_mode))
        return;
    if (fchown(fd, (uid_t)-1, was.st_gid) < 0)
        errno = 0; // it is another group's, to which the user does not belong
    cleanup_fd int from = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from >= 0)
        copy_attributes(from, fd);
}
