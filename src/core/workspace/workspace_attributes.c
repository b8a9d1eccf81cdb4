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

// Access lists are extended attributes. What the user may not set stays behind.
void workspace_keep_attributes(int fd, int directory, const char *name)
{
    static char names[XATTR_LIST_MAX], value[XATTR_SIZE_MAX]; // as large as can be; for the main thread
    struct stat was;
    if (fstatat(directory, name, &was, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(was.st_mode))
        return;
    (void)!fchown(fd, (uid_t)-1, was.st_gid); // fails for a group to which the user does not belong
    cleanup_fd int from = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t size = from < 0 ? 0 : flistxattr(from, names, sizeof names), length;
    for (const char *at = names; at < names + size; at += strlen(at) + 1)
        if ((length = fgetxattr(from, at, value, sizeof value)) >= 0)
            fsetxattr(fd, at, value, (size_t)length, 0);
}
