// SPDX-License-Identifier: Apache-2.0
// Atomic replacement of one file, see workspace_replace.h.
#include "core/files/workspace_replace.h"

#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/files/own_files.h"
#include "core/files/workspace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 256 * 1024, LINKS_MAX = 40 };

int workspace_write_bytes(int fd, const char *bytes, size_t size, struct text_sha256 *sha256, const char *path,
                          struct error *error)
{
    while (size > 0) {
        if (interrupt_check(error) < 0)
            return -1;
        ssize_t count = write(fd, bytes, size < CHUNK ? size : CHUNK);
        if (count < 0 && errno != EINTR)
            return error_system(error, errno, "cannot write %s", path);
        if (count <= 0)
            continue;
        if (sha256)
            text_sha256_update(sha256, bytes, (size_t)count);
        bytes += count;
        size -= (size_t)count;
    }
    return 0;
}

// The write in progress.
struct writing {
    const struct workspace *workspace;
    char *path;           // relative, owned
    char *directory_path; // relative, owned
    size_t kept;          // so many bytes of it name directories that were there before
    int directory;        // -1: none
    const char *name;     // in the directory; points into path
    struct stat old;      // what the name stands for, if it exists
    bool exists;
    const char *bytes;
    size_t size;
    const struct write_options *options;
    struct write_result *result;
};

static int names_a_directory(const struct writing *writing, const char *path, struct error *error)
{
    cleanup_fd int fd = workspace_resolve(writing->workspace, writing->path, O_PATH);
    if (fd < 0 && errno == EXDEV)
        return workspace_fail(error, EXDEV, "write", path);
    return error_set(error, "not_a_file", 0, "%s names a directory; expected a regular file", path);
}

// Opens the directory of writing->path, and makes it if it is missing.
static int enter(struct writing *writing, const char *path, struct error *error)
{
    writing->directory_path = workspace_split(writing->path, &writing->name);
    if (!workspace_is_file_name(writing->name))
        return names_a_directory(writing, path, error);
    if (!writing->directory_path)
        return error_system(error, ENOMEM, "cannot look at %s", path);
    writing->directory = workspace_make_directories(writing->workspace, writing->directory_path, &writing->kept);
    return writing->directory < 0 ? workspace_fail(error, errno, "create the directory of", path) : 0;
}

static void leave(struct writing *writing)
{
    cleanup_close(&writing->directory);
    writing->directory = -1;
    free(writing->directory_path);
    writing->directory_path = NULL;
    free(writing->path);
    writing->path = NULL;
}

// The path that the link at the place leads to, relative to the workspace. Owned by the caller; NULL and errno.
static char *behind_link(const struct writing *writing)
{
    char *path = NULL;
    cleanup_free char *target = workspace_read_link(writing->directory, writing->name);
    if (!target)
        return NULL;
    if (*target == '/') {
        errno = EXDEV;
        return NULL;
    }
    return asprintf(&path, "%s/%s", writing->directory_path, target) < 0 ? NULL : path;
}

// Finds the place of the file and looks at what is there. A link at the end of the path is followed, whether it leads
// to a file or to nothing.
static int find_place(struct writing *writing, const char *path, struct error *error)
{
    for (int links = 0; links <= LINKS_MAX; links++) {
        if (enter(writing, path, error) < 0)
            return -1;
        if (own_files_refuse(writing->directory, writing->name, path, error))
            return -1;
        if (fstatat(writing->directory, writing->name, &writing->old, AT_SYMLINK_NOFOLLOW) < 0)
            return errno == ENOENT ? 0 : error_system(error, errno, "cannot look at %s", path);
        writing->exists = !S_ISLNK(writing->old.st_mode);
        if (writing->exists)
            return 0;
        char *next = behind_link(writing);
        if (!next)
            return workspace_fail(error, errno, "follow the link", path);
        leave(writing);
        writing->path = next;
    }
    return workspace_fail(error, ELOOP, "follow the link", path);
}

// Copies what the file holds to the new one.
static int copy_old(const struct writing *writing, int fd, struct text_sha256 *sha256, const char *path,
                    struct error *error)
{
    static char chunk[CHUNK];
    struct stat status;
    cleanup_fd int old = workspace_open_file(writing->workspace, path, &status, error);
    if (old < 0)
        return -1;
    for (;;) {
        ssize_t count = read(old, chunk, sizeof chunk);
        if (count == 0)
            return 0;
        if (count < 0 && errno != EINTR)
            return error_system(error, errno, "cannot read %s", path);
        if (count > 0 && workspace_write_bytes(fd, chunk, (size_t)count, sha256, path, error) < 0)
            return -1;
        writing->result->size += count > 0 ? (uint64_t)count : 0;
    }
}

static int fill(int fd, void *data, const char *path, struct error *error)
{
    const struct writing *writing = data;
    struct text_sha256 sha256;
    text_sha256_init(&sha256);
    if (writing->options->append && writing->exists && copy_old(writing, fd, &sha256, path, error) < 0)
        return -1;
    if (workspace_write_bytes(fd, writing->bytes, writing->size, &sha256, path, error) < 0)
        return -1;
    writing->result->size += writing->size;
    text_sha256_final(&sha256, writing->result->sha256);
    return 0;
}

static int replace(struct writing *writing, const char *path, struct error *error)
{
    struct stat status;
    char temporary[TEMPORARY_NAME_SIZE];
    int mode = writing->options->mode, directory = writing->directory;
    if (writing->exists && !S_ISREG(writing->old.st_mode))
        return workspace_not_a_file(error, writing->old.st_mode, path);
    if (writing->exists && !writing->options->overwrite)
        return error_set(error, "already_exists", EEXIST, "cannot create %s", path);
    if (mode == MODE_AS_BEFORE && writing->exists)
        mode = (int)(writing->old.st_mode & 0777);
    *writing->result = (struct write_result){.created = !writing->exists};
    if (workspace_make_file(directory, mode, fill, writing, path, temporary, &status, error) < 0)
        return -1;
    int renamed = writing->options->overwrite ? renameat(directory, temporary, directory, writing->name)
                                              : workspace_move(directory, temporary, directory, writing->name);
    if (renamed == 0)
        return 0;
    error_system(error, errno, "cannot write %s", path);
    unlinkat(directory, temporary, 0);
    return -1;
}

int workspace_write(const struct workspace *workspace, const char *path, const char *bytes, size_t size,
                    const struct write_options *options, struct write_result *result, struct error *error)
{
    struct writing writing = {
        .workspace = workspace, .directory = -1, .bytes = bytes, .size = size, .options = options, .result = result};
    writing.path = workspace_relative(workspace, path, error);
    if (!writing.path)
        return -1;
    int outcome = find_place(&writing, path, error);
    if (outcome == 0)
        outcome = replace(&writing, path, error);
    if (outcome < 0 && writing.directory >= 0)
        workspace_remove_directories(workspace, writing.directory_path, writing.kept);
    leave(&writing);
    return outcome;
}
