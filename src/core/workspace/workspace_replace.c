// SPDX-License-Identifier: Apache-2.0
// Atomic replacement of one file, see workspace_replace.h.
#include "core/workspace/workspace_replace.h"

#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/base/io.h"
#include "core/workspace/own_files.h"
#include "core/workspace/workspace_directory.h"
#include "core/workspace/workspace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { CHUNK = 256 * 1024, LINKS_MAX = 40 };

int workspace_write_bytes(int fd, const char *bytes, size_t size, struct text_sha256 *sha256, const char *path,
                          struct error *error)
{
    while (size > 0) {
        size_t some = size_least(size, CHUNK);
        if (interrupt_check(error) < 0)
            return -1;
        if (io_write(fd, bytes, some, IO_HERE) < 0)
            return error_system(error, errno, "cannot write %s", path);
        if (sha256)
            text_sha256_update(sha256, bytes, some);
        bytes += some;
        size -= some;
    }
    return 0;
}

// The write in progress.
struct writing {
    const struct workspace *workspace;
    struct workspace_place place;
    struct stat old; // what is there
    bool exists;
    const char *bytes;
    size_t size;
    const struct workspace_write_options *options;
    struct workspace_write_result *result;
};

// The path that the link at the place leads to, relative to the workspace. Owned by the caller; NULL and errno.
static char *behind_link(const struct workspace_place *place)
{
    char *path = NULL;
    cleanup_free char *target = workspace_read_link(place->directory, place->name);
    if (target && *target == '/')
        errno = EXDEV;
    else if (target && asprintf(&path, "%s/%s", place->above, target) < 0)
        path = NULL;
    return path;
}

// Finds the place of the file and looks at what is there. A link at the end of the path is followed, whether it leads
// to a file or to nothing.
static int find_place(struct writing *writing, const char *path, struct error *error)
{
    struct workspace_place *place = &writing->place;
    char *relative = workspace_relative(writing->workspace, path, error);
    for (int links = 0; links <= LINKS_MAX; links++) {
        if (workspace_place_open(place, writing->workspace, relative, true, NULL, path, error) < 0)
            return -1;
        if (fstatat(place->directory, place->name, &writing->old, AT_SYMLINK_NOFOLLOW) < 0)
            return errno == ENOENT ? 0 : error_system(error, errno, "cannot look at %s", path);
        writing->exists = !S_ISLNK(writing->old.st_mode);
        if (writing->exists)
            return 0;
        relative = behind_link(place);
        if (!relative)
            return workspace_fail(error, errno, "follow the link", path);
        workspace_place_close(place);
    }
    *place = (struct workspace_place){.directory = -1, .path = relative};
    return workspace_fail(error, ELOOP, "follow the link", path);
}

static int write_content(int fd, void *data, const char *path, struct error *error)
{
    const struct writing *writing = data;
    struct text_sha256 sha256;
    text_sha256_init(&sha256);
    if (workspace_write_bytes(fd, writing->bytes, writing->size, &sha256, path, error) < 0)
        return -1;
    if (writing->exists)
        workspace_keep_attributes(fd, writing->place.directory, writing->place.name);
    writing->result->size = writing->size;
    text_sha256_final(&sha256, writing->result->sha256);
    return 0;
}

// Takes back what a write that failed has appended, unless others have appended too.
static void take_back(int fd, const struct stat *before, size_t most)
{
    struct stat now;
    if (fstat(fd, &now) == 0 && now.st_size <= before->st_size + (off_t)most && now.st_size > before->st_size)
        ftruncate(fd, before->st_size);
}

// In place: a file is not copied to add a line to it.
static int append(const struct writing *writing, const char *path, struct error *error)
{
    enum { FLAGS = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };
    const struct workspace_place *place = &writing->place;
    struct stat before;
    cleanup_fd int fd = openat(place->directory, place->name, FLAGS);
    if (fd < 0 || fstat(fd, &before) < 0)
        return error_system(error, errno, "cannot append to %s", path);
    if (!S_ISREG(before.st_mode))
        return workspace_not_a_file(error, before.st_mode, path);
    if (own_files_refuse_file(&before, path, error))
        return -1;
    int outcome = workspace_write_bytes(fd, writing->bytes, writing->size, NULL, path, error);
    if (outcome == 0 && writing->options->mode >= 0 && fchmod(fd, (mode_t)writing->options->mode) < 0)
        outcome = error_system(error, errno, "cannot change the mode of %s", path);
    if (outcome < 0)
        take_back(fd, &before, writing->size);
    writing->result->size = (uint64_t)before.st_size + writing->size;
    return outcome;
}

static int replace(struct writing *writing, const char *path, struct error *error)
{
    char temporary[WORKSPACE_TEMPORARY_SIZE];
    const char *name = writing->place.name;
    int mode = writing->options->mode, directory = writing->place.directory;
    if (writing->exists && !S_ISREG(writing->old.st_mode))
        return workspace_not_a_file(error, writing->old.st_mode, path);
    if (writing->exists && !writing->options->overwrite)
        return error_set(error, "already_exists", EEXIST, "cannot create %s", path);
    *writing->result = (struct workspace_write_result){.created = !writing->exists};
    if (writing->exists && writing->options->append)
        return append(writing, path, error);
    if (mode == WORKSPACE_MODE_AS_BEFORE && writing->exists)
        mode = (int)(writing->old.st_mode & 0777);
    if (workspace_make_file(directory, mode, write_content, writing, path, temporary, error) < 0)
        return -1;
    int renamed = writing->options->overwrite ? renameat(directory, temporary, directory, name)
                                              : workspace_rename_new(directory, temporary, directory, name);
    if (renamed == 0)
        return 0;
    if (errno == EBUSY || errno == EXDEV)
        workspace_fail_mounted(error, path);
    else
        error_system(error, errno, "cannot write %s", path);
    unlinkat(directory, temporary, 0);
    return -1;
}

int workspace_write(const struct workspace *workspace, const char *path, const char *bytes, size_t size,
                    const struct workspace_write_options *options, struct workspace_write_result *result,
                    struct error *error)
{
    struct writing writing = {
        .workspace = workspace, .bytes = bytes, .size = size, .options = options, .result = result};
    int outcome = find_place(&writing, path, error);
    if (outcome == 0)
        outcome = replace(&writing, path, error);
    if (outcome < 0 && writing.place.directory >= 0)
        workspace_remove_directories(workspace, writing.place.above, writing.place.kept);
    workspace_place_close(&writing.place);
    return outcome;
}
