// SPDX-License-Identifier: Apache-2.0
// Stages a change of several files, see workspace_transaction.h.
#include "core/buffer.h"
#include "core/cleanup.h"
#include "core/own_files.h"
#include "core/workspace_replace.h"
#include "core/workspace_transaction_internal.h"

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

static void drop_staged(const struct transaction *transaction, struct change *change)
{
    if (change->other)
        transaction_unlink(transaction, change->other, 0);
    free(change->other);
    change->other = NULL;
}

// Removes all that was staged. None of it is in place.
static void drop_all(const struct transaction *transaction)
{
    for (size_t i = 0; i < transaction->count; i++)
        if (transaction->changes[i].kind == CHANGE_PUT)
            drop_staged(transaction, &transaction->changes[i]);
}

void transaction_end(struct transaction *transaction)
{
    if (!transaction)
        return;
    if (transaction->state == DONE)
        transaction_sweep(transaction);
    else if (transaction->state != UNDONE)
        drop_all(transaction);
    for (size_t i = 0; i < transaction->count; i++) {
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

size_t transaction_find(const struct transaction *transaction, const char *path, bool *found)
{
    size_t low = 0, high = transaction->count;
    *found = false;
    while (low < high && !*found) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(transaction->changes[middle].path, path);
        *found = order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return high;
}

struct change *transaction_change(struct transaction *transaction, char *path)
{
    bool found;
    size_t at = transaction_find(transaction, path, &found);
    if (found) {
        free(path);
        return &transaction->changes[at];
    }
    struct change *changes = array_grow(transaction->changes, transaction->count, sizeof *changes);
    if (!changes) {
        free(path);
        return NULL;
    }
    transaction->changes = changes;
    struct change *change = &changes[at];
    memmove(change + 1, change, (transaction->count - at) * sizeof *change);
    *change = (struct change){.path = path};
    transaction->count++;
    return change;
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

static char *staged_path(const char *path, size_t directory_size, const char *name)
{
    char *staged = NULL;
    return asprintf(&staged, "%.*s%s", (int)directory_size, path, name) < 0 ? NULL : staged;
}

// Makes the change a PUT of the file that waits under the name. On failure the name is removed.
static int put(struct transaction *transaction, char **path, int directory, size_t directory_size, const char *name,
               const struct stat *status, struct error *error)
{
    char *staged = staged_path(*path, directory_size, name);
    struct change *change = staged ? transaction_change(transaction, steal_pointer(path)) : NULL;
    if (!change) {
        free(staged);
        unlinkat(directory, name, 0);
        return out_of_memory(error, "a file");
    }
    drop_staged(transaction, change);
    change->kind = CHANGE_PUT;
    change->other = staged;
    change->kept = directory_size;
    change->mode = S_ISREG(status->st_mode) ? status->st_mode & 0777 : 0644;
    return 0;
}

// The permission bits for a file: as asked, as staged before, as in the workspace; -1: those of a new file.
static int mode_for(const struct transaction *transaction, const char *path, int mode)
{
    bool found;
    struct stat status;
    size_t at = transaction_find(transaction, path, &found);
    if (mode != MODE_AS_BEFORE)
        return mode;
    if (found && transaction->changes[at].kind != CHANGE_NOTHING)
        return transaction->changes[at].kind == CHANGE_REMOVE ? -1 : (int)transaction->changes[at].mode;
    if (transaction_look(transaction, path, &status) == 0 && S_ISREG(status.st_mode))
        return status.st_mode & 0777;
    return -1;
}

int transaction_stage(struct transaction *transaction, const char *path, int mode, workspace_fill *fill, void *data,
                      struct error *error)
{
    size_t directory_size;
    struct stat status;
    char name[TEMPORARY_NAME_SIZE];
    cleanup_free char *relative = path_of_file(transaction, path, error);
    if (!relative)
        return -1;
    cleanup_fd int directory = open_waiting_directory(transaction, relative, &directory_size);
    if (directory < 0)
        return workspace_fail(error, errno, "write", path);
    mode = mode_for(transaction, relative, mode);
    int outcome = workspace_make_file(directory, mode, fill, data, path, name, &status, error);
    return outcome != 0 ? outcome : put(transaction, &relative, directory, directory_size, name, &status, error);
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
    struct bytes whole = {bytes, size};
    return transaction_stage(transaction, path, mode, fill_bytes, &whole, error);
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
    struct stat status;
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
    if (made == 0)
        made = fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW); // fails if somebody else removed it at once
    if (made < 0)
        return error_system(error, errno, "cannot make the link %s", path);
    return put(transaction, &relative, directory, directory_size, name, &status, error);
}

int transaction_remove(struct transaction *transaction, const char *path, struct error *error)
{
    bool found;
    struct stat status;
    cleanup_free char *relative = path_of_file(transaction, path, error);
    if (!relative)
        return -1;
    size_t at = transaction_find(transaction, relative, &found);
    enum change_kind before = found ? transaction->changes[at].kind : CHANGE_NOTHING;
    int looked = transaction_look(transaction, relative, &status);
    if (before == CHANGE_REMOVE || (looked < 0 && before != CHANGE_PUT))
        return workspace_fail(error, looked < 0 ? errno : ENOENT, "remove", path);
    if (looked == 0 && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
        return workspace_not_a_file(error, status.st_mode, path);
    struct change *change = transaction_change(transaction, steal_pointer(&relative));
    if (!change)
        return out_of_memory(error, path);
    drop_staged(transaction, change);
    change->kind = looked == 0 ? CHANGE_REMOVE : CHANGE_NOTHING;
    return 0;
}

int transaction_chmod(struct transaction *transaction, const char *path, int mode, struct error *error)
{
    bool found;
    struct stat status;
    cleanup_free char *relative = path_of_file(transaction, path, error);
    if (!relative)
        return -1;
    size_t at = transaction_find(transaction, relative, &found);
    struct change *change = found ? &transaction->changes[at] : NULL;
    const char *there = change && change->other ? change->other : relative;
    if ((change && change->kind == CHANGE_REMOVE) || transaction_look(transaction, there, &status) < 0)
        return workspace_fail(error, change && change->kind == CHANGE_REMOVE ? ENOENT : errno, "change the mode of",
                              path);
    if (!S_ISREG(status.st_mode))
        return workspace_not_a_file(error, status.st_mode, path);
    if (there != relative && transaction_set_mode(transaction, there, (mode_t)mode) < 0)
        return error_system(error, errno, "cannot change the mode of %s", path);
    if (!change)
        change = transaction_change(transaction, steal_pointer(&relative));
    if (!change)
        return out_of_memory(error, path);
    change->mode = (mode_t)mode;
    if (change->kind != CHANGE_PUT)
        change->kind = CHANGE_MODE;
    return 0;
}
