// SPDX-License-Identifier: Apache-2.0
// Stages a change of several files, see workspace_transaction.h.
#include "core/base/buffer.h"
#include "core/base/cleanup.h"
#include "core/files/own_files.h"
#include "core/files/workspace_replace.h"
#include "core/files/workspace_transaction_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct transaction *transaction_begin(const struct workspace *workspace)
{
    struct transaction *transaction = calloc(1, sizeof *transaction);
    if (transaction)
        transaction->workspace = workspace;
    return transaction;
}

int transaction_parent(const struct transaction *transaction, const char *path, const char **name)
{
    cleanup_free char *directory = workspace_split(path, name);
    return directory ? workspace_resolve(transaction->workspace, directory, O_PATH | O_DIRECTORY) : -1;
}

int transaction_look(const struct transaction *transaction, const char *path, struct stat *status)
{
    const char *name;
    cleanup_fd int directory = transaction_parent(transaction, path, &name);
    return directory < 0 ? -1 : fstatat(directory, name, status, AT_SYMLINK_NOFOLLOW);
}

int transaction_set_mode(const struct transaction *transaction, const char *path, mode_t mode)
{
    enum { FLAGS = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };
    const char *name;
    cleanup_fd int directory = transaction_parent(transaction, path, &name);
    if (directory < 0)
        return -1;
    cleanup_fd int fd = openat(directory, name, O_RDONLY | FLAGS);
    if (fd < 0 && errno == EACCES)
        fd = openat(directory, name, O_WRONLY | FLAGS);
    return fd < 0 ? -1 : fchmod(fd, mode);
}

static int out_of_memory(struct error *error, const char *path)
{
    return error_system(error, ENOMEM, "cannot change %s", path);
}

int transaction_unlink(const struct transaction *transaction, const char *path, int flags)
{
    const char *name;
    cleanup_fd int directory = transaction_parent(transaction, path, &name);
    return directory < 0 ? -1 : unlinkat(directory, name, flags);
}

void transaction_end(struct transaction *transaction)
{
    if (!transaction)
        return;
    if (transaction->state == DONE)
        transaction_sweep(transaction);
    for (size_t i = 0; i < transaction->count; i++) {
        if (transaction->changes[i].kind == CHANGE_PUT && transaction->state < DONE)
            transaction_unlink(transaction, transaction->changes[i].other, 0);
        free(transaction->changes[i].path);
        free(transaction->changes[i].other);
        free(transaction->changes[i].aside);
    }
    for (size_t i = 0; i < transaction->directory_count; i++)
        free(transaction->directories[i].path);
    free(transaction->changes);
    free(transaction->directories);
    free(transaction);
}

// Adds a change, and takes its strings. On failure the caller keeps them.
static int add_change(struct transaction *transaction, const struct change *change, struct error *error)
{
    struct change *changes = array_grow(transaction->changes, transaction->count, sizeof *changes);
    if (!changes)
        return out_of_memory(error, change->path);
    transaction->changes = changes;
    changes[transaction->count++] = *change;
    return 0;
}

// The path relative to the workspace. Its last name must be that of a file.
static char *path_of_file(const struct transaction *transaction, const char *path, struct error *error)
{
    if (transaction->state != STAGING) {
        error_set(error, "invalid", 0, "cannot change %s: all changes have been made", path);
        return NULL;
    }
    char *relative = workspace_relative(transaction->workspace, path, error);
    if (!relative)
        return NULL;
    const char *name;
    cleanup_fd int directory = transaction_parent(transaction, relative, &name);
    if (!workspace_is_file_name(name))
        error_set(error, "not_a_file", 0, "%s names a directory; expected a regular file", path);
    else if (directory < 0 || !own_files_refuse(directory, name, path, error))
        return relative;
    free(relative);
    return NULL;
}

// Opens the directory where a new file for path can wait: the nearest one that exists. The first *size bytes of path
// are its path, with the slash at its end.
static int open_waiting_directory(const struct transaction *transaction, const char *path, size_t *size)
{
    cleanup_free char *directory = strdup(path);
    while (directory) {
        char *slash = strrchr(directory, '/');
        *size = slash ? (size_t)(slash - directory) + 1 : 0;
        if (!slash)
            return workspace_resolve(transaction->workspace, ".", O_PATH | O_DIRECTORY);
        *slash = '\0';
        int fd = workspace_resolve(transaction->workspace, directory, O_PATH | O_DIRECTORY);
        if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR))
            return fd;
    }
    return -1;
}

// Adds the change that puts what waits under the name. On failure the name is removed.
static int put(struct transaction *transaction, char **path, int directory, size_t directory_size, const char *name,
               struct error *error)
{
    cleanup_free char *staged = NULL;
    if (asprintf(&staged, "%.*s%s", (int)directory_size, *path, name) < 0)
        staged = NULL;
    const struct change change = {.kind = CHANGE_PUT, .path = *path, .other = staged, .kept = directory_size};
    if ((staged ? add_change(transaction, &change, error) : out_of_memory(error, *path)) < 0) {
        unlinkat(directory, name, 0);
        return -1;
    }
    steal_pointer(path);
    steal_pointer(&staged);
    return 0;
}

// The permission bits for a file: as asked, as in the workspace; -1: those of a new file.
static int mode_for(const struct transaction *transaction, const char *path, int mode)
{
    struct stat status;
    if (mode != MODE_AS_BEFORE)
        return mode;
    bool is_file = transaction_look(transaction, path, &status) == 0 && S_ISREG(status.st_mode);
    return is_file ? (int)(status.st_mode & 0777) : -1;
}

struct bytes {
    const char *data;
    size_t size;
};

static int fill_bytes(int fd, void *data, const char *path, struct error *error)
{
    const struct bytes *bytes = data;
    return workspace_write_bytes(fd, bytes->data, bytes->size, NULL, path, error);
}

int transaction_write(struct transaction *transaction, const char *path, const char *bytes, size_t size, int mode,
                      struct error *error)
{
    size_t directory_size;
    struct stat status;
    struct bytes whole = {bytes, size};
    char name[TEMPORARY_NAME_SIZE];
    cleanup_free char *relative = path_of_file(transaction, path, error);
    if (!relative)
        return -1;
    cleanup_fd int directory = open_waiting_directory(transaction, relative, &directory_size);
    if (directory < 0)
        return workspace_fail(error, errno, "write", path);
    mode = mode_for(transaction, relative, mode);
    if (workspace_make_file(directory, mode, fill_bytes, &whole, path, name, &status, error) < 0)
        return -1;
    return put(transaction, &relative, directory, directory_size, name, error);
}

// Whether a link's target, as written, stays inside. Links on its way are checked when it is followed.
static int check_target(const struct transaction *transaction, const char *path, const char *target,
                        struct error *error)
{
    cleanup_free char *whole = NULL, *relative = NULL;
    const char *slash = strrchr(path, '/');
    if (!*target)
        return error_set(error, "invalid", 0, "the link %s has an empty target", path);
    if (*target == '/')
        return error_set(error, "path_escape", 0, "the link %s leads to %s: path escapes workspace", path, target);
    if (asprintf(&whole, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, target) < 0)
        return out_of_memory(error, path);
    relative = workspace_relative(transaction->workspace, whole, error);
    return relative ? 0 : -1;
}

int transaction_symlink(struct transaction *transaction, const char *path, const char *target, struct error *error)
{
    size_t directory_size;
    char name[TEMPORARY_NAME_SIZE];
    cleanup_free char *relative = path_of_file(transaction, path, error);
    if (!relative || check_target(transaction, relative, target, error) < 0)
        return -1;
    cleanup_fd int directory = open_waiting_directory(transaction, relative, &directory_size);
    if (directory < 0)
        return workspace_fail(error, errno, "write the link", path);
    int made;
    do {
        workspace_temporary_name(name);
        made = symlinkat(target, directory, name);
    } while (made < 0 && errno == EEXIST);
    if (made < 0)
        return error_system(error, errno, "cannot make the link %s", path);
    return put(transaction, &relative, directory, directory_size, name, error);
}

// Adds a change of a file or link that is there. links: may it be a link?
static int add_change_of(struct transaction *transaction, const struct change *wanted, const char *path, bool links,
                         const char *doing, struct error *error)
{
    struct stat status;
    struct change change = *wanted;
    cleanup_free char *relative = path_of_file(transaction, path, error);
    if (!relative)
        return -1;
    if (transaction_look(transaction, relative, &status) < 0)
        return workspace_fail(error, errno, doing, path);
    if (!S_ISREG(status.st_mode) && !(links && S_ISLNK(status.st_mode)))
        return workspace_not_a_file(error, status.st_mode, path);
    change.path = relative;
    if (add_change(transaction, &change, error) < 0)
        return -1;
    steal_pointer(&relative);
    return 0;
}

int transaction_remove(struct transaction *transaction, const char *path, struct error *error)
{
    const struct change change = {.kind = CHANGE_REMOVE};
    return add_change_of(transaction, &change, path, true, "remove", error);
}

int transaction_chmod(struct transaction *transaction, const char *path, int mode, struct error *error)
{
    const struct change change = {.kind = CHANGE_MODE, .mode = (mode_t)mode};
    return add_change_of(transaction, &change, path, false, "change the mode of", error);
}
