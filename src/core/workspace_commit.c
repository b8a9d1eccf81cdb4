// SPDX-License-Identifier: Apache-2.0
// Plans and commits a change of several files, see workspace_transaction.h. workspace_undo.c takes it back.
#include "core/cleanup.h"
#include "core/interrupt.h"
#include "core/workspace_transaction_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

int transaction_two_names(const struct transaction *transaction, enum how how, const char *from, const char *to)
{
    const char *from_name, *to_name;
    cleanup_fd int from_directory = transaction_parent(transaction, from, &from_name);
    cleanup_fd int to_directory = from_directory < 0 ? -1 : transaction_parent(transaction, to, &to_name);
    if (to_directory < 0)
        return -1;
    switch (how) {
    case EXCHANGE:
        return (int)syscall(SYS_renameat2, from_directory, from_name, to_directory, to_name, RENAME_EXCHANGE);
    case MOVE:
        return workspace_move(from_directory, from_name, to_directory, to_name);
    case RENAME:
        return renameat(from_directory, from_name, to_directory, to_name);
    default:
        return linkat(from_directory, from_name, to_directory, to_name, 0);
    }
}

char *transaction_second_aside(const struct change *change)
{
    char *aside = NULL;
    return asprintf(&aside, "%s~", change->other) < 0 ? NULL : aside;
}

// Where a removed file or link waits: in its own directory or, if a file replaces a directory above it, in the
// directory that this one is in. Owned by the caller; NULL: out of memory.
static char *aside_of_removed(const struct transaction *transaction, const char *path)
{
    char name[TEMPORARY_NAME_SIZE], *aside = NULL;
    cleanup_free char *above = strdup(path);
    size_t length = strlen(path);
    if (!above)
        return NULL;
    for (char *slash; (slash = strrchr(above, '/'));) {
        bool found;
        *slash = '\0';
        size_t at = transaction_find(transaction, above, &found);
        if (found && transaction->changes[at].kind == CHANGE_PUT)
            length = strlen(above);
    }
    while (length > 0 && path[length - 1] != '/')
        length--;
    workspace_temporary_name(name);
    return asprintf(&aside, "%.*s%s", (int)length, path, name) < 0 ? NULL : aside;
}

static int plan_directory(struct transaction *transaction, const char *path)
{
    struct stat status;
    for (size_t i = 0; i < transaction->directory_count; i++)
        if (strcmp(transaction->directories[i].path, path) == 0)
            return 0;
    if (transaction_look(transaction, path, &status) < 0)
        return -1;
    char *copy = strdup(path);
    return copy ? transaction_clear(transaction, copy, status.st_mode & 07777) : -1;
}

// A file replaces a directory: plans to remove the directories that the removals below it leave empty.
static int plan_directories(struct transaction *transaction, const char *path)
{
    size_t length = strlen(path);
    if (plan_directory(transaction, path) < 0)
        return -1;
    for (size_t i = 0; i < transaction->count; i++) {
        const struct change *change = &transaction->changes[i];
        if (change->kind != CHANGE_REMOVE || strncmp(change->path, path, length) != 0 || change->path[length] != '/')
            continue;
        cleanup_free char *directory = strdup(change->path);
        for (char *slash = directory ? directory + length : NULL; slash; slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            int outcome = plan_directory(transaction, directory);
            *slash = '/';
            if (outcome < 0)
                return -1;
        }
        if (!directory)
            return -1;
    }
    return 0;
}

static const char *const doing[] = {
    [CHANGE_PUT] = "write",
    [CHANGE_REMOVE] = "remove",
    [CHANGE_MODE] = "change the mode of",
};

static int plan_change(struct transaction *transaction, struct change *change, struct error *error)
{
    struct stat status;
    bool puts = change->kind == CHANGE_PUT;
    if (change->kind == CHANGE_NOTHING)
        return 0;
    if (transaction_look(transaction, change->path, &status) < 0) {
        bool is_new = puts && (errno == ENOENT || errno == ENOTDIR);
        return is_new ? 0 : workspace_fail(error, errno, doing[change->kind], change->path);
    }
    if (puts && S_ISDIR(status.st_mode))
        return plan_directories(transaction, change->path) < 0 ? workspace_fail(error, errno, "write", change->path)
                                                               : 0;
    if (!S_ISREG(status.st_mode) && (change->kind == CHANGE_MODE || !S_ISLNK(status.st_mode)))
        return workspace_not_a_file(error, status.st_mode, change->path);
    change->before = transaction_identity(&status);
    change->old_mode = change->kind == CHANGE_MODE ? status.st_mode & 07777 : 0;
    if (change->kind != CHANGE_REMOVE)
        return 0;
    free(change->other);
    change->other = aside_of_removed(transaction, change->path);
    return change->other ? 0 : error_system(error, ENOMEM, "cannot remove %s", change->path);
}

int transaction_plan(struct transaction *transaction, struct plan *plan, struct error *error)
{
    for (size_t i = 0; transaction->state == STAGING && i < transaction->count; i++)
        if (plan_change(transaction, &transaction->changes[i], error) < 0)
            return -1;
    transaction->state = PLANNED;
    *plan =
        (struct plan){transaction->changes, transaction->count, transaction->directories, transaction->directory_count};
    return 0;
}

// Replaces a file without RENAME_EXCHANGE: a second link keeps the old one or, on a file system without links, it is
// moved aside.
static int replace_by_rename(const struct transaction *transaction, const struct change *change)
{
    cleanup_free char *aside = transaction_second_aside(change);
    if (!aside)
        return -1;
    if (transaction_two_names(transaction, LINK, change->path, aside) == 0)
        return transaction_two_names(transaction, RENAME, change->other, change->path);
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
        return -1;
    if (transaction_two_names(transaction, MOVE, change->path, aside) < 0)
        return -1;
    return transaction_two_names(transaction, MOVE, change->other, change->path);
}

static int replace(const struct transaction *transaction, const struct change *change)
{
    if (transaction_two_names(transaction, EXCHANGE, change->other, change->path) == 0)
        return 0;
    return errno == EINVAL || errno == ENOSYS ? replace_by_rename(transaction, change) : -1;
}

static int make_directories(const struct transaction *transaction, const char *path)
{
    size_t kept;
    const char *name;
    cleanup_free char *directory = workspace_split(path, &name);
    cleanup_fd int fd = directory ? workspace_make_directories(transaction->workspace, directory, &kept) : -1;
    return fd < 0 ? -1 : 0;
}

// Removes the directories, empty by now, that a file replaces.
static int clear_directory(const struct transaction *transaction, const char *path)
{
    size_t length = strlen(path);
    for (size_t i = transaction->directory_count; i-- > 0;) {
        const char *directory = transaction->directories[i].path;
        bool within = strncmp(directory, path, length) == 0 && (!directory[length] || directory[length] == '/');
        if (within && transaction_unlink(transaction, directory, AT_REMOVEDIR) < 0)
            return -1;
    }
    return 0;
}

static int put_in_place(const struct transaction *transaction, const struct change *change, struct error *error)
{
    if (make_directories(transaction, change->path) < 0)
        return workspace_fail(error, errno, "create the directory of", change->path);
    if (clear_directory(transaction, change->path) < 0)
        return error_set(error, "not_a_file", errno, "cannot replace the directory %s by a file", change->path);
    int outcome = change->before.inode ? replace(transaction, change)
                                       : transaction_two_names(transaction, MOVE, change->other, change->path);
    return outcome < 0 ? workspace_fail(error, errno, "write", change->path) : 0;
}

static int make_real(const struct transaction *transaction, struct error *error)
{
    const struct change *changes = transaction->changes;
    for (size_t i = 0; i < transaction->count; i++)
        if (changes[i].kind == CHANGE_REMOVE &&
            transaction_two_names(transaction, MOVE, changes[i].path, changes[i].other) < 0)
            return workspace_fail(error, errno, doing[CHANGE_REMOVE], changes[i].path);
    for (size_t i = 0; i < transaction->count; i++) {
        if (changes[i].kind == CHANGE_PUT && put_in_place(transaction, &changes[i], error) < 0)
            return -1;
        if (changes[i].kind == CHANGE_MODE && transaction_set_mode(transaction, changes[i].path, changes[i].mode) < 0)
            return workspace_fail(error, errno, doing[CHANGE_MODE], changes[i].path);
    }
    return 0;
}

int transaction_commit(struct transaction *transaction, struct error *error)
{
    struct plan unused;
    if (interrupt_check(error) < 0 || transaction_plan(transaction, &unused, error) < 0)
        return -1;
    transaction->state = UNDONE;
    if (make_real(transaction, error) < 0) {
        transaction_undo(transaction, error);
        return -1;
    }
    transaction->state = DONE;
    return 0;
}
