// SPDX-License-Identifier: Apache-2.0
// Committing a change of several files, and taking it back where a part fails, see workspace_transaction.h.
#include "core/cleanup.h"
#include "core/interrupt.h"
#include "core/workspace_transaction_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

// Room for one more undo, made before the thing is done so that nothing is done that cannot be undone. NULL and errno.
static struct undo *next_undo(struct transaction *transaction, const char *path, const char *other)
{
    if (transaction->undo_count == transaction->undo_capacity) {
        size_t capacity = transaction->undo_capacity ? transaction->undo_capacity * 2 : 16;
        struct undo *undos = realloc(transaction->undos, capacity * sizeof *undos);
        if (!undos)
            return NULL;
        transaction->undos = undos;
        transaction->undo_capacity = capacity;
    }
    struct undo *undo = &transaction->undos[transaction->undo_count];
    *undo = (struct undo){.path = strdup(path), .other = other ? strdup(other) : NULL};
    if (undo->path && (!other || undo->other))
        return undo;
    free(undo->path);
    free(undo->other);
    errno = ENOMEM;
    return NULL;
}

// Keeps the undo where the thing was done, drops it where it was not. Returns outcome.
static int done(struct transaction *transaction, struct undo *undo, int outcome)
{
    if (outcome == 0) {
        transaction->undo_count++;
        return 0;
    }
    int saved = errno;
    free(undo->path);
    free(undo->other);
    errno = saved;
    return -1;
}

enum how { EXCHANGE, MOVE, RENAME, LINK };

// One call on two names, each found anew from the root.
static int two_names(const struct transaction *transaction, enum how how, const char *from, const char *to)
{
    const char *from_name, *to_name;
    cleanup_fd int from_folder = transaction_parent(transaction, from, &from_name);
    cleanup_fd int to_folder = from_folder < 0 ? -1 : transaction_parent(transaction, to, &to_name);
    if (to_folder < 0)
        return -1;
    switch (how) {
    case EXCHANGE:
        return (int)syscall(SYS_renameat2, from_folder, from_name, to_folder, to_name, RENAME_EXCHANGE);
    case MOVE:
        return workspace_move(from_folder, from_name, to_folder, to_name);
    case RENAME:
        return renameat(from_folder, from_name, to_folder, to_name);
    default:
        return linkat(from_folder, from_name, to_folder, to_name, 0);
    }
}

// aside: what is moved was there before, and is to go in the end.
static int move(struct transaction *transaction, const char *from, const char *to, bool aside)
{
    struct undo *undo = next_undo(transaction, to, from);
    if (!undo)
        return -1;
    undo->what = UNDO_MOVE;
    undo->aside = aside ? undo->path : NULL;
    return done(transaction, undo, two_names(transaction, MOVE, from, to));
}

// Puts the staged name where something is, without RENAME_EXCHANGE: a second link keeps the old, or, where there are no
// links, it is moved aside.
static int replace_by_rename(struct transaction *transaction, const char *staged, const char *path)
{
    cleanup_free char *aside = transaction_aside(path);
    struct undo *undo = aside ? next_undo(transaction, path, aside) : NULL;
    if (!undo)
        return -1;
    undo->what = UNDO_RENAME;
    undo->aside = undo->other;
    if (done(transaction, undo, two_names(transaction, LINK, path, aside)) == 0)
        return two_names(transaction, RENAME, staged, path);
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
        return -1;
    return move(transaction, path, aside, true) < 0 ? -1 : move(transaction, staged, path, false);
}

static int replace(struct transaction *transaction, const char *staged, const char *path)
{
    struct undo *undo = next_undo(transaction, path, staged);
    if (!undo)
        return -1;
    undo->what = UNDO_EXCHANGE;
    undo->aside = undo->other;
    if (done(transaction, undo, two_names(transaction, EXCHANGE, staged, path)) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    return replace_by_rename(transaction, staged, path);
}

static int make_folders(struct transaction *transaction, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return 0;
    cleanup_free char *folder = strndup(path, (size_t)(slash - path));
    struct undo *undo = folder ? next_undo(transaction, folder, NULL) : NULL;
    if (!undo)
        return -1;
    undo->what = UNDO_FOLDERS;
    cleanup_fd int fd = workspace_make_folders(transaction->workspace, folder, &undo->kept);
    return done(transaction, undo, fd < 0 ? -1 : 0);
}

static int remove_folder(struct transaction *transaction, const char *path)
{
    struct stat status;
    const char *name;
    cleanup_fd int folder = transaction_parent(transaction, path, &name);
    struct undo *undo = folder < 0 ? NULL : next_undo(transaction, path, NULL);
    if (!undo)
        return -1;
    undo->what = UNDO_RMDIR;
    int outcome = fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW);
    undo->mode = status.st_mode & 07777;
    return done(transaction, undo, outcome < 0 ? -1 : unlinkat(folder, name, AT_REMOVEDIR));
}

// A file comes where a folder is: removes the folders that the removals below it have emptied.
static int clear_folder(struct transaction *transaction, const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < transaction->count; i++) {
        const struct change *change = &transaction->changes[i];
        if (change->kind != CHANGE_REMOVE || strncmp(change->path, path, length) != 0 || change->path[length] != '/')
            continue;
        cleanup_free char *folder = strdup(change->path);
        if (!folder)
            return -1;
        for (char *slash; (slash = strrchr(folder, '/')) && (size_t)(slash - folder) > length;) {
            *slash = '\0';
            if (remove_folder(transaction, folder) < 0)
                break;
        }
    }
    return remove_folder(transaction, path);
}

static int set_mode(struct transaction *transaction, const char *path, mode_t mode)
{
    struct stat status;
    cleanup_fd int fd = transaction_open_for_mode(transaction, path);
    struct undo *undo = fd < 0 || fstat(fd, &status) < 0 ? NULL : next_undo(transaction, path, NULL);
    if (!undo)
        return -1;
    undo->what = UNDO_MODE;
    undo->mode = status.st_mode & 07777;
    return done(transaction, undo, fchmod(fd, mode));
}

// Takes a file or link away, into the folder it is in; or, where a file is to come in place of a folder above it, into
// the folder that this one is in.
static int take_away(struct transaction *transaction, const char *path)
{
    cleanup_free char *near = strdup(path), *above = strdup(path);
    if (!near || !above)
        return -1;
    for (char *slash; (slash = strrchr(above, '/'));) {
        bool found;
        *slash = '\0';
        size_t at = transaction_find(transaction, above, &found);
        if (found && transaction->changes[at].kind == CHANGE_PUT)
            strcpy(near, above);
    }
    cleanup_free char *aside = transaction_aside(near);
    return aside ? move(transaction, path, aside, true) : -1;
}

static int put_in_place(struct transaction *transaction, struct change *change, struct error *error)
{
    struct stat status;
    if (make_folders(transaction, change->path) < 0)
        return workspace_fail(error, errno, "make the folder of", change->path);
    int outcome;
    if (transaction_look(transaction, change->path, &status) < 0) {
        outcome = errno == ENOENT ? move(transaction, change->staged, change->path, false) : -1;
    } else if (S_ISDIR(status.st_mode)) {
        if (clear_folder(transaction, change->path) < 0)
            return error_set(error, "not_a_file", errno, "cannot put a file where the folder %s is", change->path);
        outcome = move(transaction, change->staged, change->path, false);
    } else if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
        return workspace_not_a_file(error, status.st_mode, change->path);
    } else {
        outcome = replace(transaction, change->staged, change->path);
    }
    return outcome < 0 ? workspace_fail(error, errno, "write", change->path) : 0;
}

static int undo_rmdir(const struct transaction *transaction, const struct undo *undo)
{
    const char *name;
    cleanup_fd int parent = transaction_parent(transaction, undo->path, &name);
    if (parent < 0 || mkdirat(parent, name, 0700) < 0)
        return -1;
    cleanup_fd int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return folder < 0 ? -1 : fchmod(folder, undo->mode);
}

static int undo_mode(const struct transaction *transaction, const struct undo *undo)
{
    cleanup_fd int fd = transaction_open_for_mode(transaction, undo->path);
    return fd < 0 ? -1 : fchmod(fd, undo->mode);
}

static void remove_aside(const struct transaction *transaction, const struct undo *undo)
{
    const char *name;
    cleanup_fd int folder = undo->aside ? transaction_parent(transaction, undo->aside, &name) : -1;
    if (folder >= 0)
        unlinkat(folder, name, 0);
}

// The two names may be links of one file, which rename leaves both.
static int undo_rename(const struct transaction *transaction, const struct undo *undo)
{
    if (two_names(transaction, RENAME, undo->other, undo->path) < 0)
        return -1;
    remove_aside(transaction, undo);
    return 0;
}

static int undo_one(const struct transaction *transaction, const struct undo *undo)
{
    switch (undo->what) {
    case UNDO_EXCHANGE:
        return two_names(transaction, EXCHANGE, undo->other, undo->path);
    case UNDO_MOVE:
        return two_names(transaction, MOVE, undo->path, undo->other);
    case UNDO_RENAME:
        return undo_rename(transaction, undo);
    case UNDO_RMDIR:
        return undo_rmdir(transaction, undo);
    case UNDO_MODE:
        return undo_mode(transaction, undo);
    default:
        workspace_remove_folders(transaction->workspace, undo->path, undo->kept);
        return 0;
    }
}

// Puts everything back, the last first. What cannot be put back is said in the error.
static void roll_back(struct transaction *transaction, struct error *error)
{
    const struct undo *failed = NULL;
    for (size_t i = transaction->undo_count; i-- > 0;)
        if (undo_one(transaction, &transaction->undos[i]) < 0)
            failed = &transaction->undos[i];
    if (!failed)
        return;
    struct error whole;
    error_set(&whole, error->code, 0, "%s; and %s could not be put back%s%s", error->message ? error->message : "",
              failed->path, failed->other ? ", it is kept as " : "", failed->other ? failed->other : "");
    whole.number = error->number;
    error_clear(error);
    *error = whole;
}

// The change stands: what was set aside goes. What cannot be removed stays under its temporary name, and harms nothing.
static void sweep(struct transaction *transaction)
{
    for (size_t i = 0; i < transaction->undo_count; i++)
        remove_aside(transaction, &transaction->undos[i]);
    for (size_t i = 0; i < transaction->count; i++) {
        struct change *change = &transaction->changes[i];
        char *slash = change->kind == CHANGE_REMOVE ? strrchr(change->path, '/') : NULL;
        if (!slash)
            continue;
        *slash = '\0';
        workspace_remove_folders(transaction->workspace, change->path, 0);
        *slash = '/';
    }
}

static int make_real(struct transaction *transaction, struct error *error)
{
    struct change *changes = transaction->changes;
    for (size_t i = 0; i < transaction->count; i++)
        if (changes[i].kind == CHANGE_REMOVE && take_away(transaction, changes[i].path) < 0)
            return workspace_fail(error, errno, "remove", changes[i].path);
    for (size_t i = 0; i < transaction->count; i++) {
        if (changes[i].kind == CHANGE_PUT && put_in_place(transaction, &changes[i], error) < 0)
            return -1;
        if (changes[i].kind == CHANGE_MODE && set_mode(transaction, changes[i].path, changes[i].mode) < 0)
            return workspace_fail(error, errno, "change the mode of", changes[i].path);
    }
    return 0;
}

int transaction_commit(struct transaction *transaction, struct error *error)
{
    if (interrupt_check(error) < 0)
        return -1;
    if (make_real(transaction, error) < 0) {
        roll_back(transaction, error);
        return -1;
    }
    sweep(transaction);
    for (size_t i = 0; i < transaction->count; i++) {
        free(transaction->changes[i].staged);
        transaction->changes[i].staged = NULL;
    }
    return 0;
}
