// SPDX-License-Identifier: Apache-2.0
// Atomic replacement of one file, see workspace_replace.h.
#include "core/workspace_replace.h"

#include "core/cleanup.h"
#include "core/interrupt.h"
#include "core/workspace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { CHUNK = 256 * 1024 };

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
    struct place place;
    struct stat old; // where exists
    bool exists;
    char temporary[TEMPORARY_NAME_SIZE]; // "": none
    int fd;
};

// After a failure: as if nothing had been.
static void undo(const struct workspace *workspace, const struct writing *writing)
{
    if (*writing->temporary)
        unlinkat(writing->place.directory, writing->temporary, 0);
    workspace_remove_directories(workspace, writing->place.directory_path, writing->place.kept);
}

static int look(struct writing *writing, const struct write_options *options, const char *path, struct error *error)
{
    if (fstatat(writing->place.directory, writing->place.name, &writing->old, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_system(error, errno, "cannot look at %s", path);
    writing->exists = true;
    if (!S_ISREG(writing->old.st_mode))
        return workspace_not_a_file(error, writing->old.st_mode, path);
    if (!options->overwrite)
        return error_set(error, "already_exists", EEXIST, "cannot create %s", path);
    return 0;
}

// Copies what the file holds to the new one.
static int copy_old(struct writing *writing, const struct workspace *workspace, struct write_result *result,
                    struct text_sha256 *sha256, const char *path, struct error *error)
{
    static char chunk[CHUNK];
    struct stat status;
    cleanup_fd int old = workspace_open_file(workspace, path, &status, error);
    if (old < 0)
        return -1;
    for (;;) {
        ssize_t count = read(old, chunk, sizeof chunk);
        if (count == 0)
            return 0;
        if (count < 0 && errno != EINTR)
            return error_system(error, errno, "cannot read %s", path);
        if (count > 0 && workspace_write_bytes(writing->fd, chunk, (size_t)count, sha256, path, error) < 0)
            return -1;
        result->size += count > 0 ? (uint64_t)count : 0;
    }
}

// Gives the new file its mode. What was made new has it from the start, less the umask.
static int set_mode(const struct writing *writing, const struct write_options *options)
{
    if (options->mode != MODE_AS_BEFORE)
        return fchmod(writing->fd, (mode_t)options->mode);
    return writing->exists ? fchmod(writing->fd, writing->old.st_mode & 0777) : 0;
}

// Puts the new file in its place.
static int put(struct writing *writing, const struct write_options *options)
{
    int directory = writing->place.directory;
    const char *name = writing->place.name;
    if (options->durable && fsync(writing->fd) < 0)
        return -1;
    if (options->overwrite ? renameat(directory, writing->temporary, directory, name) < 0
                           : workspace_move(directory, writing->temporary, directory, name) < 0)
        return -1;
    *writing->temporary = '\0';
    if (!options->durable)
        return 0;
    cleanup_fd int readable = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return readable < 0 ? -1 : fsync(readable);
}

static int fill_and_put(struct writing *writing, const struct workspace *workspace, const char *path, const char *bytes,
                        size_t size, const struct write_options *options, struct write_result *result,
                        struct error *error)
{
    struct text_sha256 sha256;
    if (look(writing, options, path, error) < 0)
        return -1;
    bool private = writing->exists || options->mode != MODE_AS_BEFORE;
    writing->fd = workspace_temporary_file(writing->place.directory, private ? 0600 : 0644, writing->temporary);
    if (writing->fd < 0) {
        *writing->temporary = '\0';
        return error_system(error, errno, "cannot make a new file beside %s", path);
    }
    text_sha256_init(&sha256);
    *result = (struct write_result){.created = !writing->exists};
    if (options->append && writing->exists && copy_old(writing, workspace, result, &sha256, path, error) < 0)
        return -1;
    if (workspace_write_bytes(writing->fd, bytes, size, &sha256, path, error) < 0)
        return -1;
    result->size += size;
    text_sha256_final(&sha256, result->sha256);
    if (set_mode(writing, options) < 0 || put(writing, options) < 0)
        return error_system(error, errno, "cannot write %s", path);
    return 0;
}

int workspace_write(const struct workspace *workspace, const char *path, const char *bytes, size_t size,
                    const struct write_options *options, struct write_result *result, struct error *error)
{
    if (options->mode > 0777)
        return error_set(error, "invalid", 0, "the mode %o of %s holds more than permission bits (at most 777)",
                         (unsigned)options->mode, path);
    cleanup_free char *relative = workspace_relative(workspace, path, error);
    if (!relative)
        return -1;
    struct writing writing = {.fd = -1};
    if (workspace_place(workspace, relative, true, true, &writing.place, error) < 0) {
        workspace_place_free(&writing.place);
        return -1;
    }
    int outcome = fill_and_put(&writing, workspace, path, bytes, size, options, result, error);
    if (outcome < 0)
        undo(workspace, &writing);
    if (writing.fd >= 0)
        close(writing.fd);
    workspace_place_free(&writing.place);
    return outcome;
}
