// SPDX-License-Identifier: Apache-2.0
// Resolves paths within the workspace: with openat2 or, where the kernel lacks it, a walk that is as strict.
#include "core/base/buffer.h"
#include "core/base/cleanup.h"
#include "core/base/io.h"
#include "core/workspace/workspace.h"
#include "core/workspace/workspace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

enum {
    LINKS_MAX = 40, // as in the kernel
    RETRIES_MAX = 64,
    LINK_SIZE_MAX = 65536,
};

char *workspace_read_link(int directory, const char *name)
{
    for (size_t size = 256; size <= LINK_SIZE_MAX; size *= 2) {
        cleanup_free char *target = malloc(size);
        ssize_t length = target ? readlinkat(directory, name, target, size) : -1;
        if (length < 0)
            return NULL;
        if ((size_t)length < size) {
            target[length] = '\0';
            return steal_pointer(&target);
        }
    }
    errno = ENAMETOOLONG;
    return NULL;
}

// openat2 returns EAGAIN if a rename elsewhere kept it from being sure.
static int open_beneath(int root, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    for (int i = 0; i < RETRIES_MAX; i++) {
        long fd = syscall(SYS_openat2, root, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            return (int)fd;
    }
    return errno = EAGAIN, -1;
}

// Tried once: an old kernel returns ENOSYS, a sandbox around us EPERM or anything else.
static bool have_openat2(int root)
{
    static enum { UNKNOWN, YES, NO } known;
    if (known == UNKNOWN) {
        int fd = open_beneath(root, ".", O_PATH | O_DIRECTORY);
        known = fd >= 0 ? YES : NO;
        if (fd >= 0)
            close(fd);
    }
    return known == YES;
}

// The walk. It opens one name at a time in a directory that it holds, and reads links instead of following them, so no
// rename can lead it outside. It never opens "..", but goes back to the directory it came from.
struct path_walk {
    int root;
    int *directories; // opened on the way down, the deepest last
    size_t depth;
    char *path; // owned: the path being walked
    char *rest; // in path: what is left to walk
    int links;  // followed, and races lost
};

static void walk_free(struct path_walk *walk)
{
    while (walk->depth)
        close(walk->directories[--walk->depth]);
    free(walk->directories);
    free(walk->path);
}

static int walk_directory(const struct path_walk *walk)
{
    return walk->depth ? walk->directories[walk->depth - 1] : walk->root;
}

static int walk_up(struct path_walk *walk)
{
    if (walk->depth == 0)
        return errno = EXDEV, -1;
    close(walk->directories[--walk->depth]);
    return 0;
}

// Owns the descriptor, also if it fails.
static int walk_down(struct path_walk *walk, int directory)
{
    int *directories = array_grow(walk->directories, walk->depth, sizeof *directories);
    if (!directories) {
        close(directory);
        return -1;
    }
    walk->directories = directories;
    directories[walk->depth++] = directory;
    return 0;
}

// Puts the target of a link before what is left to walk.
static int walk_link(struct path_walk *walk, int link)
{
    if (++walk->links > LINKS_MAX)
        return errno = ELOOP, -1;
    cleanup_free char *target = workspace_read_link(link, "");
    if (!target)
        return -1;
    if (*target == '/' || !*target)
        return errno = *target ? EXDEV : ENOENT, -1;
    size_t target_length = strlen(target), rest_length = strlen(walk->rest);
    char *path = malloc(target_length + rest_length + 1);
    if (!path)
        return -1;
    memcpy(path, target, target_length);
    memcpy(path + target_length, walk->rest, rest_length + 1);
    free(walk->path);
    walk->path = walk->rest = path;
    return 0;
}

// The next name, "" if it is too long, cut off from the rest, which then begins with its slash or is empty. NULL at the
// end.
static char *walk_name(struct path_walk *walk, char name[NAME_MAX + 1])
{
    walk->rest += strspn(walk->rest, "/");
    size_t length = strcspn(walk->rest, "/");
    if (length == 0)
        return NULL;
    size_t kept = length <= NAME_MAX ? length : 0;
    memcpy(name, walk->rest, kept);
    name[kept] = '\0';
    walk->rest += length;
    return name;
}

// Opens the last name with the flags. seen is an O_PATH descriptor of what was there, which is not a link.
static int walk_open_last(const struct path_walk *walk, int *seen, mode_t mode, const char *name, int flags)
{
    if (!(flags & O_PATH))
        return openat(walk_directory(walk), name, flags | O_NOFOLLOW | O_CLOEXEC);
    if ((flags & O_DIRECTORY) && !S_ISDIR(mode))
        return errno = ENOTDIR, -1;
    return steal_fd(seen);
}

enum { WALK_GOES_ON = -2 };

// Walks one name: a descriptor at the end, WALK_GOES_ON, or -1 and errno.
static int walk_step(struct path_walk *walk, int flags)
{
    char buffer[NAME_MAX + 1];
    const char *name = walk_name(walk, buffer);

    if (!name)
        return openat(walk_directory(walk), ".", flags | O_CLOEXEC);
    if (strcmp(name, ".") == 0)
        return WALK_GOES_ON;
    if (strcmp(name, "..") == 0)
        return walk_up(walk) < 0 ? -1 : WALK_GOES_ON;
    if (!*name)
        return errno = ENAMETOOLONG, -1;
    cleanup_fd int seen = openat(walk_directory(walk), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (seen < 0 || fstat(seen, &status) < 0)
        return -1;
    bool last = !*walk->rest;
    if (S_ISLNK(status.st_mode) && !(last && (flags & O_NOFOLLOW)))
        return walk_link(walk, seen) < 0 ? -1 : WALK_GOES_ON;
    if (last)
        return walk_open_last(walk, &seen, status.st_mode, name, flags);
    if (!S_ISDIR(status.st_mode))
        return errno = ENOTDIR, -1;
    return walk_down(walk, steal_fd(&seen)) < 0 ? -1 : WALK_GOES_ON;
}

static int open_by_walk(int root, const char *path, int flags)
{
    struct path_walk walk = {.root = root, .path = strdup(path)};
    if (!walk.path)
        return -1;
    walk.rest = walk.path;
    int fd;
    do
        fd = walk_step(&walk, flags);
    while (fd == WALK_GOES_ON);
    int saved = errno;
    walk_free(&walk);
    errno = saved;
    return fd;
}

int workspace_resolve(const struct workspace *workspace, const char *relative, int flags)
{
    if (flags == (O_PATH | O_DIRECTORY) && strcmp(relative, ".") == 0) // that of most files and commands
        return io_duplicate(workspace->fd);
    if (have_openat2(workspace->fd)) {
        int fd = open_beneath(workspace->fd, relative, flags);
        if (fd >= 0 || errno != EAGAIN)
            return fd;
    }
    return open_by_walk(workspace->fd, relative, flags);
}
