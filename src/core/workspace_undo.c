// SPDX-License-Identifier: Apache-2.0
// Undoes a change of several files, at once or after a crash, and clears up after a commit; see
// workspace_transaction.h. What is under the names of the plan tells what was done.
#include "core/buffer.h"
#include "core/cleanup.h"
#include "core/reserve.h"
#include "core/workspace_transaction_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 64 << 10, MADE_ANEW = 0700 };

// The file under a name. inode 0: there is none, or it cannot be seen.
static struct identity stands(const struct transaction *transaction, const char *path)
{
    struct stat status;
    if (transaction_look(transaction, path, &status) < 0)
        return (struct identity){0};
    return transaction_identity(&status);
}

static bool is_same(struct identity a, struct identity b)
{
    return a.inode && a.inode == b.inode;
}

// After a crash somebody may have written to the file, or its inode may belong to another file by now.
static bool is_still(const struct transaction *transaction, struct identity found, struct identity known)
{
    bool untouched = found.size == known.size && found.mtime == known.mtime;
    return is_same(found, known) && (untouched || !transaction->recalled);
}

static bool is_put(const struct transaction *transaction, const struct change *change, struct identity found)
{
    return change->kind == CHANGE_PUT && is_still(transaction, found, change->put);
}

// Whether the file under a temporary name is the one that was under the path before.
static bool is_before(const struct transaction *transaction, const struct change *change, struct identity found)
{
    if (!found.inode || (change->kind == CHANGE_PUT && is_same(found, change->put)))
        return false;
    return !transaction->recalled || is_still(transaction, found, change->before);
}

// The temporary name where the old file of a change waits; any: where any file is. Owned by the caller; NULL: there is
// none, or memory is out.
static char *find_aside(const struct transaction *transaction, const struct change *change, bool any)
{
    if (!change->other)
        return NULL;
    struct identity found = stands(transaction, change->other);
    if (any ? found.inode != 0 : is_before(transaction, change, found))
        return strdup(change->other);
    cleanup_free char *second = transaction_second_aside(change);
    if (!second)
        return NULL;
    found = stands(transaction, second);
    return (any ? found.inode != 0 : is_before(transaction, change, found)) ? steal_pointer(&second) : NULL;
}

// Whether a change whose old file is not found was never begun: under its temporary names is the new file or nothing.
// After a workspace was copied, inodes and times prove neither.
static bool is_untouched(const struct transaction *transaction, const struct change *change, struct identity found)
{
    cleanup_free char *aside = find_aside(transaction, change, true);
    return found.inode && (!aside || is_put(transaction, change, stands(transaction, aside)));
}

// Brings back the old file, unless it is there, or a file that is neither the old nor the new one.
static int bring_back(const struct transaction *transaction, const struct change *change)
{
    struct identity found = stands(transaction, change->path);
    cleanup_free char *aside = find_aside(transaction, change, false);
    if (is_put(transaction, change, found))
        return aside ? transaction_two_names(transaction, RENAME, aside, change->path) : -1;
    if (!aside)
        return is_untouched(transaction, change, found) ? 0 : -1;
    if (!found.inode)
        return transaction_two_names(transaction, MOVE, aside, change->path);
    // Both are links of one file: it was about to be set aside.
    return is_same(found, stands(transaction, aside)) ? transaction_unlink(transaction, aside, 0) : -1;
}

static void remove_made_directories(const struct transaction *transaction, const struct change *change)
{
    const char *slash = strrchr(change->path, '/');
    cleanup_free char *directory = slash ? strndup(change->path, (size_t)(slash - change->path)) : NULL;
    if (directory && strlen(directory) > change->kept)
        workspace_remove_directories(transaction->workspace, directory, change->kept);
}

// Whether a file that the change made seems to be at its path, though its inode and times differ.
static bool seems_made(const struct transaction *transaction, const struct change *change)
{
    struct stat status;
    return transaction_look(transaction, change->path, &status) == 0 && !S_ISDIR(status.st_mode) &&
           !stands(transaction, change->other).inode;
}

static int undo_put(const struct transaction *transaction, const struct change *change)
{
    int outcome = 0;
    if (change->before.inode)
        outcome = bring_back(transaction, change);
    else if (is_put(transaction, change, stands(transaction, change->path)))
        outcome = transaction_unlink(transaction, change->path, 0);
    else if (seems_made(transaction, change))
        outcome = -1;
    if (is_put(transaction, change, stands(transaction, change->other)))
        transaction_unlink(transaction, change->other, 0);
    remove_made_directories(transaction, change);
    return outcome;
}

static int undo_mode(const struct transaction *transaction, const struct change *change)
{
    struct stat status;
    if (transaction_look(transaction, change->path, &status) < 0 || !S_ISREG(status.st_mode))
        return -1;
    if ((status.st_mode & 07777) == change->old_mode ||
        !is_still(transaction, transaction_identity(&status), change->before))
        return 0;
    return transaction_set_mode(transaction, change->path, change->old_mode);
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

// What could not be put back, in words.
struct losses {
    struct buffer words;
    size_t count, unnamed;
};

static void lose(struct losses *losses, const char *path, const char *kept)
{
    cleanup_free char *words = NULL;
    losses->count++;
    if (losses->words.size >= MOST_WORDS) {
        losses->unnamed++;
        return;
    }
    int length =
        asprintf(&words, "%s%s%s%s", losses->count > 1 ? "; " : "", path, kept ? " is kept as " : "", kept ? kept : "");
    if (length < 0 || buffer_append(&losses->words, words, (size_t)length) < 0)
        return;
}

static void say(const struct losses *losses, struct error *error)
{
    struct error whole = {0};
    size_t more = losses->unnamed;
    error_set(&whole, error->code, 0, "%s; could not be put back: %.*s%s%.*zu%s", error->message ? error->message : "",
              (int)losses->words.size, losses->words.data ? losses->words.data : "", more ? "; and " : "", more ? 1 : 0,
              more, more ? " more" : "");
    whole.number = error->number;
    error_clear(error);
    *error = whole;
}

static void undo_change(const struct transaction *transaction, const struct change *change, struct losses *losses)
{
    int outcome = 0;
    if (change->kind == CHANGE_PUT)
        outcome = undo_put(transaction, change);
    else if (change->kind == CHANGE_MODE)
        outcome = undo_mode(transaction, change);
    else if (change->kind == CHANGE_REMOVE)
        outcome = bring_back(transaction, change);
    if (outcome == 0)
        return;
    cleanup_free char *kept = find_aside(transaction, change, true);
    lose(losses, change->path, kept);
}

// Removals come last: they were done first, and need the directories that were removed after them.
int transaction_undo(struct transaction *transaction, struct error *error)
{
    struct losses losses = {0};
    if (error->number == ENOMEM)
        reserve_release();
    for (size_t i = transaction->count; i-- > 0;)
        if (transaction->changes[i].kind != CHANGE_REMOVE)
            undo_change(transaction, &transaction->changes[i], &losses);
    for (size_t i = 0; i < transaction->directory_count; i++)
        if (undo_cleared(transaction, &transaction->directories[i]) < 0)
            lose(&losses, transaction->directories[i].path, NULL);
    for (size_t i = transaction->count; i-- > 0;)
        if (transaction->changes[i].kind == CHANGE_REMOVE)
            undo_change(transaction, &transaction->changes[i], &losses);
    if (losses.count > 0)
        say(&losses, error);
    buffer_free(&losses.words);
    return losses.count > 0 ? -1 : 0;
}

static int undo_whole(struct transaction *transaction, const char *what, struct error *error)
{
    struct error undone = {0};
    error_set(&undone, "incomplete", 0, "%s could not be undone completely", what);
    if (transaction_undo(transaction, &undone) < 0) {
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
    reserve_release(); // because memory is mostly the reason
    return undo_whole(transaction, "the change of a step that failed", error);
}

// In a transaction of this run the name has the old file, whatever it was. For another run's, the identity must fit.
static void remove_aside(const struct transaction *transaction, const struct change *change)
{
    if (transaction->recalled) {
        cleanup_free char *aside = find_aside(transaction, change, false);
        if (aside)
            transaction_unlink(transaction, aside, 0);
    } else if (transaction_unlink(transaction, change->other, 0) < 0 && errno == ENOENT && change->kind == CHANGE_PUT) {
        cleanup_free char *second = transaction_second_aside(change);
        if (second)
            transaction_unlink(transaction, second, 0);
    }
}

void transaction_sweep(struct transaction *transaction)
{
    for (size_t i = 0; i < transaction->count; i++)
        if (transaction->changes[i].kind != CHANGE_MODE && transaction->changes[i].before.inode)
            remove_aside(transaction, &transaction->changes[i]);
    for (size_t i = 0; i < transaction->count; i++) {
        struct change *change = &transaction->changes[i];
        char *slash = change->kind == CHANGE_REMOVE ? strrchr(change->path, '/') : NULL;
        if (!slash)
            continue;
        *slash = '\0';
        workspace_remove_directories(transaction->workspace, change->path, 0);
        *slash = '/';
    }
}

bool workspace_is_temporary_name(const char *name)
{
    enum { PREFIX = sizeof ".sba-" - 1 };
    return strlen(name) == TEMPORARY_NAME_SIZE - 1 && strncmp(name, ".sba-", PREFIX) == 0 &&
           strspn(name + PREFIX, "0123456789abcdef") == TEMPORARY_NAME_SIZE - 1 - PREFIX;
}

// Whether it is a temporary name in the directory of path or in one above.
static bool is_beside(const char *other, const char *path)
{
    const char *slash = strrchr(other, '/');
    size_t directory = slash ? (size_t)(slash + 1 - other) : 0;
    return workspace_is_temporary_name(other + directory) && strncmp(other, path, directory) == 0;
}

static int no_plan(const char *path, struct error *error)
{
    return error_set(error, "invalid", 0, "what is said of %s is not part of a change", path);
}

int transaction_recall(struct transaction *transaction, const struct change *change, struct error *error)
{
    transaction->recalled = true;
    transaction->state = UNDONE; // so that transaction_end removes nothing
    bool moves = change->kind == CHANGE_PUT || change->kind == CHANGE_REMOVE;
    if (change->kind == CHANGE_NOTHING || !*change->path || moves != (change->other != NULL) ||
        (moves && !is_beside(change->other, change->path)))
        return no_plan(change->path, error);
    cleanup_free char *path = strdup(change->path), *other = moves ? strdup(change->other) : NULL;
    struct change *copy = path && (other || !moves) ? transaction_change(transaction, steal_pointer(&path)) : NULL;
    if (!copy)
        return error_system(error, ENOMEM, "cannot undo the change of %s", change->path);
    if (copy->kind != CHANGE_NOTHING)
        return no_plan(change->path, error);
    char *own = copy->path;
    *copy = *change;
    copy->path = own;
    copy->other = steal_pointer(&other);
    return 0;
}

int transaction_recall_directory(struct transaction *transaction, const struct cleared *directory, struct error *error)
{
    transaction->recalled = true;
    transaction->state = UNDONE;
    char *path = strdup(directory->path);
    if (!path || transaction_clear(transaction, path, directory->mode) < 0)
        return error_system(error, ENOMEM, "cannot undo the change of %s", directory->path);
    return 0;
}

int transaction_recover(struct transaction *transaction, bool committed, struct error *error)
{
    if (committed) {
        transaction_sweep(transaction);
        return 0;
    }
    return undo_whole(transaction, "a change that was cut off", error);
}
