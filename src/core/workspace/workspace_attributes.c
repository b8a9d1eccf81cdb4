// SPDX-License-Identifier: Apache-2.0
// What a new file takes over from the one whose place it gets, see workspace_internal.h.
#include "core/base/cleanup.h"
#include "core/workspace/workspace_internal.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

// Extended attributes; access lists are some. What the user may not set stays behind.
static void copy_attributes(int from, int to)
{
    static char names[XATTR_LIST_MAX], value[XATTR_SIZE_MAX]; // as large as can be; for the main thread
    ssize_t size = flistxattr(from, names, sizeof names);
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
        ssize_t length = fgetxattr(from, names + at, value, sizeof value);
        if (length >= 0)
            fsetxattr(to, names + at, value, (size_t)length, 0);
    }
}

void workspace_keep_attributes(int fd, int directory, const char *name)
{
    struct stat was;
    if (fstatat(directory, name, &was, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(was.st_mode))
        return;
    (void)!fchown(fd, (uid_t)-1, was.st_gid); // fails for a group to which the user does not belong
    cleanup_fd int from = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from >= 0)
        copy_attributes(from, fd);
}
