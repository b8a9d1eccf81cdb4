// SPDX-License-Identifier: Apache-2.0
// Plans, commits and undoes a change of several files, see workspace_transaction.h.
#include "core/base/buffer.h"
#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/files/workspace_transaction_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 64 << 10, MADE_ANEW = 0700 };

typedef int two_names(int from_directory, const char *from, int to_directory, const char *to);

static int link_names(int from_directory, const char *from, int to_directory, const char *to)
{
    return linkat(from_directory, from, to_directory, to, 0);
}

// One call with two names, both resolved from the root. 0, or -1 and errno.
static int with_names(const struct transaction *transaction, two_names *call, const char *from, const char *to)
{
    const char *from_name, *to_name;
    cleanup_fd int from_directory = transaction_parent(transaction, from, &from_name);
    cleanup_fd int to_directory = from_directory < 0 ? -1 : transaction_parent(transaction, to, &to_name);
    return to_directory < 0 ? -1 : call(from_directory, from_name, to_directory, to_name);
}

// Removes a file or link, if there is one: a directory was put back before.
static int unlink_file(const struct transaction *transaction, const char *path)
{
    bool removed = transaction_unlink(transaction, path, 0) == 0;
    return removed || errno == ENOENT || errno == ENOTDIR || errno == EISDIR ? 0 : -1;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

// Where an old file or link waits: in its own directory or, if a file replaces a directory above it, in the directory
// that this one is in. Owned by the caller; NULL: out of memory.
static char *aside_of(const struct transaction *transaction, const char *path)
{
    char name[TEMPORARY_NAME_SIZE], *aside = NULL;
    cleanup_free char *above = strdup(path);
    size_t length = strlen(path);
    if (!above)
        return NULL;
    for (char *slash; (slash = strrchr(above, '/'));) {
        *slash = '\0';
        const struct change key = {.path = above};
        const struct change *found = bsearch(&key, transaction->changes, transaction->count, sizeof key, compare_paths);
        if (found && found->kind == CHANGE_PUT)
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
    struct cleared *directories =
        array_grow(transaction->directories, transaction->directory_count, sizeof *directories);
    char *copy = directories ? strdup(path) : NULL;
    if (directories)
        transaction->directories = directories;
    if (copy)
        directories[transaction->directory_count++] = (struct cleared){copy, status.st_mode & 07777};
    return copy ? 0 : -1;
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
    change->old_mode = status.st_mode & 07777;
    if (change->kind == CHANGE_MODE)
        return 0;
    change->aside = aside_of(transaction, change->path);
    return change->aside ? 0 : error_system(error, ENOMEM, "cannot %s %s", doing[change->kind], change->path);
}

int transaction_plan(struct transaction *transaction, struct plan *plan, struct error *error)
{
    if (transaction->state == STAGING && transaction->count > 1)
        qsort(transaction->changes, transaction->count, sizeof *transaction->changes, compare_paths);
    for (size_t i = 0; transaction->state == STAGING && i < transaction->count; i++)
        if (plan_change(transaction, &transaction->changes[i], error) < 0)
            return -1;
    transaction->state = PLANNED;
    *plan =
        (struct plan){transaction->changes, transaction->count, transaction->directories, transaction->directory_count};
    return 0;
}

// A second link keeps the old file or, where there are no links, it is moved aside: then nothing is at its path for a
// moment.
static int replace(const struct transaction *transaction, const struct change *change)
{
    if (with_names(transaction, link_names, change->path, change->aside) < 0) {
        bool has_links = errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK;
        if (has_links || with_names(transaction, renameat, change->path, change->aside) < 0)
            return -1;
    }
    return with_names(transaction, renameat, change->other, change->path);
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
    int outcome = change->aside ? replace(transaction, change)
                                : with_names(transaction, workspace_move, change->other, change->path);
    return outcome < 0 ? workspace_fail(error, errno, "write", change->path) : 0;
}

static int make_real(const struct transaction *transaction, struct error *error)
{
    const struct change *changes = transaction->changes;
    for (size_t i = 0; i < transaction->count; i++)
        if (changes[i].kind == CHANGE_REMOVE &&
            with_names(transaction, renameat, changes[i].path, changes[i].aside) < 0)
            return workspace_fail(error, errno, doing[CHANGE_REMOVE], changes[i].path);
    for (size_t i = 0; i < transaction->count; i++) {
        if (changes[i].kind == CHANGE_PUT && put_in_place(transaction, &changes[i], error) < 0)
            return -1;
        if (changes[i].kind == CHANGE_MODE && transaction_set_mode(transaction, changes[i].path, changes[i].mode) < 0)
            return workspace_fail(error, errno, doing[CHANGE_MODE], changes[i].path);
    }
    return 0;
}

// Removes what a crash or a failure left of a change, and puts back what was there, by the names alone. Can be done
// again after a part of it.
static int undo_file(const struct transaction *transaction, const struct change *change)
{
    struct stat status;
    int outcome = 0;
    if (change->aside && transaction_look(transaction, change->aside, &status) == 0) {
        // If both are links to one file, the rename does nothing.
        outcome = with_names(transaction, renameat, change->aside, change->path);
        if (outcome == 0)
            outcome = unlink_file(transaction, change->aside);
    } else if (change->aside) {
        outcome = errno == ENOENT ? 0 : -1; // it was not set aside: the path is as it was
    } else if (transaction_look(transaction, change->other, &status) < 0) {
        outcome = errno == ENOENT ? unlink_file(transaction, change->path) : -1; // what waited is at the path
    }
    return outcome;
}

static void undo_staging(const struct transaction *transaction, const struct change *change)
{
    const char *slash = strrchr(change->path, '/');
    cleanup_free char *directory = slash ? strndup(change->path, (size_t)(slash - change->path)) : NULL;
    transaction_unlink(transaction, change->other, 0);
    if (directory && strlen(directory) > change->kept)
        workspace_remove_directories(transaction->workspace, directory, change->kept);
}

static int undo_cleared(const struct transaction *transaction, const struct cleared *cleared)
{
    const char *name;
    struct stat status;
    cleanup_fd int parent = transaction_parent(transaction, cleared->path, &name);
    if (parent < 0 || (mkdirat(parent, name, MADE_ANEW) < 0 && errno != EEXIST))
        return -1;
    cleanup_fd int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0 || fstat(directory, &status) < 0)
        return fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) ? 0 : -1;
    return (status.st_mode & 07777) == MADE_ANEW ? fchmod(directory, cleared->mode) : 0;
}

static int undo_change(const struct transaction *transaction, const struct change *change)
{
    if (change->kind == CHANGE_NOTHING)
        return 0;
    if (change->kind == CHANGE_MODE)
        return transaction_set_mode(transaction, change->path, change->old_mode);
    int outcome = undo_file(transaction, change);
    if (change->kind == CHANGE_PUT)
        undo_staging(transaction, change);
    return outcome;
}

// Adds what could not be put back to the message.
static void say_lost(struct buffer *lost, const char *path, const char *aside)
{
    cleanup_free char *words = NULL;
    int length =
        asprintf(&words, "%s%s%s%s", lost->size ? "; " : "", path, aside ? " is kept as " : "", aside ? aside : "");
    if (length > 0 && lost->size < MOST_WORDS)
        buffer_append(lost, words, (size_t)length);
}

// Removals come last: they were done first, and need the directories that were removed after them.
static int undo(const struct transaction *transaction, struct error *error)
{
    cleanup_buffer struct buffer lost = {0};
    const struct change *changes = transaction->changes;
    int outcome = 0;
    for (int removals = 0; removals <= 1; removals++) {
        for (size_t i = 0; removals && i < transaction->directory_count; i++)
            if (undo_cleared(transaction, &transaction->directories[i]) < 0)
                outcome = -1, say_lost(&lost, transaction->directories[i].path, NULL);
        for (size_t i = transaction->count; i-- > 0;)
            if ((changes[i].kind == CHANGE_REMOVE) == removals && undo_change(transaction, &changes[i]) < 0)
                outcome = -1, say_lost(&lost, changes[i].path, changes[i].aside);
    }
    if (outcome < 0) {
        struct error whole = {0};
        error_set(&whole, error->code, 0, "%s; could not be put back: %.*s", error->message ? error->message : "",
                  (int)lost.size, lost.data ? lost.data : "");
        whole.number = error->number;
        error_clear(error);
        *error = whole;
    }
    return outcome;
}

int transaction_commit(struct transaction *transaction, struct error *error)
{
    struct plan unused;
    if (interrupt_check(error) < 0 || transaction_plan(transaction, &unused, error) < 0)
        return -1;
    transaction->state = UNDONE;
    if (make_real(transaction, error) < 0) {
        undo(transaction, error);
        return -1;
    }
    transaction->state = DONE;
    return 0;
}

static int undo_whole(const struct transaction *transaction, const char *what, struct error *error)
{
    struct error undone = {0};
    error_set(&undone, "incomplete", 0, "%s could not be undone completely", what);
    if (undo(transaction, &undone) < 0) {
        *error = undone;
        return -1;
    }
    error_clear(&undone);
    return 0;
}

int transaction_revert(struct transaction *transaction, struct error *error)
{
    if (transaction->state != DONE)
        return 0;
    transaction->state = UNDONE;
    return undo_whole(transaction, "the change of a step that failed", error);
}

void transaction_sweep(const struct transaction *transaction)
{
    for (size_t i = 0; i < transaction->count; i++)
        if (transaction->changes[i].aside)
            transaction_unlink(transaction, transaction->changes[i].aside, 0);
    for (size_t i = 0; i < transaction->count; i++) {
        const struct change *change = &transaction->changes[i];
        const char *slash = change->kind == CHANGE_REMOVE ? strrchr(change->path, '/') : NULL;
        cleanup_free char *directory = slash ? strndup(change->path, (size_t)(slash - change->path)) : NULL;
        if (directory)
            workspace_remove_directories(transaction->workspace, directory, 0);
    }
}

int transaction_recover(const struct workspace *workspace, const struct plan *plan, bool committed, struct error *error)
{
    const struct transaction transaction = {.workspace = workspace,
                                            .changes = (struct change *)plan->changes,
                                            .count = plan->count,
                                            .directories = (struct cleared *)plan->directories,
                                            .directory_count = plan->directory_count};
    if (!committed)
        return undo_whole(&transaction, "a change that was cut off", error);
    transaction_sweep(&transaction);
    return 0;
}
