// SPDX-License-Identifier: Apache-2.0
// The confined directory, see workspace.h: reading paths, and opening what they name.
#include "core/workspace/workspace.h"

#include "core/base/cleanup.h"
#include "core/workspace/own_files.h"
#include "core/workspace/workspace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

// The next name of a path, without slashes and ".". NULL at the end.
static const char *next_name(const char **path, size_t *length)
{
    const char *name;
    do {
        name = *path + strspn(*path, "/");
        *length = strcspn(name, "/");
        *path = name + *length;
    } while (*length == 1 && *name == '.');
    return *length ? name : NULL;
}

static bool is_parent(const char *name, size_t length)
{
    return length == 2 && memcmp(name, "..", 2) == 0;
}

// The part of an absolute path after a prefix, compared name by name ("/work" is not a prefix of "/workspace"). NULL:
// it is not below.
static const char *below(const char *path, const char *prefix)
{
    size_t wanted_length, length;
    const char *wanted;
    while ((wanted = next_name(&prefix, &wanted_length))) {
        const char *name = next_name(&path, &length);
        if (!name || length != wanted_length || memcmp(name, wanted, length) != 0)
            return NULL;
    }
    return path;
}

static int escapes(struct error *error, const char *path)
{
    return error_set(error, "path_escape", 0, "%s: path escapes workspace", path);
}

// Writes the names of path to out, which has room for all of them.
static int join_names(const char *path, char *out, struct error *error)
{
    const char *whole = path, *name;
    char *end = out;
    size_t length, depth = 0;

    while ((name = next_name(&path, &length))) {
        if (is_parent(name, length) && depth == 0)
            return escapes(error, whole);
        depth = is_parent(name, length) ? depth - 1 : depth + 1;
        if (end != out)
            *end++ = '/';
        memcpy(end, name, length);
        end += length;
    }
    size_t size = strlen(whole);
    bool directory = size > 0 && (whole[size - 1] == '/' || (size > 1 && strcmp(whole + size - 2, "/.") == 0));
    if (end == out)
        *end++ = '.';
    else if (directory)
        *end++ = '/';
    *end = '\0';
    return 0;
}

char *workspace_relative(const struct workspace *workspace, const char *path, struct error *error)
{
    size_t size = strlen(path);
    if (size == 0) {
        error_set(error, "invalid", 0, "the path is empty; write . for the workspace itself");
        return NULL;
    }
    if (size >= PATH_MAX) {
        error_set(error, "name_too_long", 0, "the path %.40s... is longer than %d bytes", path, PATH_MAX - 1);
        return NULL;
    }
    const char *inside = path;
    cleanup_free char *real_path = NULL; // without links, as commands are told it
    if (*path == '/') {
        inside = below(path, workspace->path);
        real_path = inside ? NULL : realpath(workspace->path, NULL);
        if (real_path)
            inside = below(path, real_path);
        if (!inside)
            return escapes(error, path), NULL;
    }
    cleanup_free char *relative = malloc(size + 2);
    if (!relative)
        return error_memory(error, "cannot look at %s", path), NULL;
    if (join_names(inside, relative, error) < 0)
        return NULL;
    return steal_pointer(&relative);
}

static char *absolute_path(const char *path)
{
    char *absolute = NULL;
    if (*path == '/')
        return strdup(path);
    cleanup_free char *here = getcwd(NULL, 0);
    if (!here || asprintf(&absolute, "%s/%s", here, path) < 0)
        return NULL;
    return absolute;
}

int workspace_open(struct workspace *workspace, const char *path, struct error *error)
{
    *workspace = (struct workspace){.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (workspace->fd < 0)
        return error_system(error, errno, "cannot open the directory %s", path);
    workspace->path = absolute_path(path);
    if (workspace->path)
        return 0;
    error_system(error, errno, "cannot find the absolute path of the directory %s", path);
    workspace_close(workspace);
    return -1;
}

void workspace_close(struct workspace *workspace)
{
    cleanup_close(&workspace->fd);
    free(workspace->path);
    *workspace = (struct workspace){.fd = -1};
}

int workspace_fail(struct error *error, int number, const char *doing, const char *path)
{
    if (number == EXDEV)
        return error_set(error, "path_escape", 0, "cannot %s %s: path escapes workspace", doing, path);
    if (number == ELOOP)
        return error_set(error, "too_many_links", 0, "cannot %s %s: its links lead in a circle", doing, path);
    if (number == EAGAIN)
        return error_set(error, "io_error", 0, "cannot %s %s: it is locked or changes all the time", doing, path);
    return error_system(error, number, "cannot %s %s", doing, path);
}

const char *workspace_type_name(mode_t mode)
{
    static const struct {
        mode_t type;
        const char *name;
    } types[] = {
        {S_IFREG, "file"}, {S_IFDIR, "directory"}, {S_IFLNK, "symlink"}, {S_IFIFO, "fifo"}, {S_IFSOCK, "socket"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == (mode & S_IFMT))
            return types[i].name;
    return "device";
}

int workspace_not_a_file(struct error *error, mode_t mode, const char *path)
{
    const char *what = S_ISFIFO(mode) ? "FIFO" : S_ISLNK(mode) ? "symbolic link" : workspace_type_name(mode);
    return error_set(error, "not_a_file", 0, "%s is a %s, not a regular file", path, what);
}

int workspace_fail_mounted(struct error *error, const char *path)
{
    return error_set(error, "mount_point", 0,
                     "cannot replace %s: it is a mount point, so no other file can take its place; run_command can "
                     "write into it",
                     path);
}

// Looks before it opens, so that a FIFO's writer or a device notices nothing. Something else may take the name in
// between: so the open itself does no harm either, and what was opened is looked at again.
int workspace_open_file(const struct workspace *workspace, const char *path, int flags, struct stat *status,
                        struct error *error)
{
    cleanup_free char *relative = workspace_relative(workspace, path, error);
    if (!relative)
        return -1;
    cleanup_fd int seen = workspace_resolve(workspace, relative, O_PATH | flags);
    if (seen < 0 || fstat(seen, status) < 0)
        return workspace_fail(error, errno, "read", path);
    if (!S_ISREG(status->st_mode))
        return workspace_not_a_file(error, status->st_mode, path);
    cleanup_fd int fd = workspace_resolve(workspace, relative, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags);
    if (fd < 0 || fstat(fd, status) < 0)
        return workspace_fail(error, errno, "read", path);
    if (!S_ISREG(status->st_mode))
        return workspace_not_a_file(error, status->st_mode, path);
    if (own_files_refuse_file(status, path, error))
        return -1;
    return steal_fd(&fd);
}

int workspace_open_directory(const struct workspace *workspace, const char *path, struct error *error)
{
    cleanup_free char *relative = workspace_relative(workspace, path, error);
    if (!relative)
        return -1;
    int fd = workspace_resolve(workspace, relative, O_PATH | O_DIRECTORY);
    return fd < 0 ? workspace_fail(error, errno, "open the directory", path) : fd;
}

int workspace_stat(const struct workspace *workspace, const char *path, struct stat *status, char **target,
                   struct error *error)
{
    *target = NULL;
    cleanup_free char *relative = workspace_relative(workspace, path, error);
    if (!relative)
        return -1;
    cleanup_fd int fd = workspace_resolve(workspace, relative, O_PATH | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, status) < 0)
        return workspace_fail(error, errno, "look at", path);
    if (S_ISLNK(status->st_mode) && !(*target = workspace_read_link(fd, "")))
        return workspace_fail(error, errno, "read the link", path);
    return 0;
}
