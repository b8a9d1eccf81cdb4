// SPDX-License-Identifier: Apache-2.0
// What staging (workspace_transaction.c), committing (workspace_commit.c) and taking back (workspace_undo.c) share.
//
// Nothing here holds a descriptor: a patch may have more files than a process may have open. Paths are resolved anew,
// confined, each time.
#ifndef SBA_CORE_WORKSPACE_TRANSACTION_INTERNAL_H
#define SBA_CORE_WORKSPACE_TRANSACTION_INTERNAL_H

#include "core/workspace_internal.h"
#include "core/workspace_transaction.h"

#include <sys/stat.h>

struct transaction {
    const struct workspace *workspace;
    struct change *changes; // in byte order of path
    size_t count;
    struct cleared *directories; // each before those in it
    size_t directory_count;
    enum { STAGING, PLANNED, DONE, UNDONE } state;
    bool recalled; // its changes come from a record: each name must still stand for what it did
};

// The directory that holds what path names, open (O_PATH), and the name in it, which points into path. -1 and errno.
int transaction_parent(const struct transaction *transaction, const char *path, const char **name);

// lstat of a path: 0, or -1 and errno.
int transaction_look(const struct transaction *transaction, const char *path, struct stat *status);

// Removes a file or link. 0, or -1 and errno.
int transaction_unlink(const struct transaction *transaction, const char *path);

// Where among the changes that of a path is, or is to be inserted.
size_t transaction_find(const struct transaction *transaction, const char *path, bool *found);

// The change of a path; a new one is CHANGE_NOTHING. Takes path, also where it fails. NULL: out of memory.
struct change *transaction_change(struct transaction *transaction, char *path);

// Adds a directory that is to go. Takes path, also where it fails. -1 and errno.
int transaction_clear(struct transaction *transaction, char *path, mode_t mode);

// Opens a file to change its mode: it need be only readable or only writable. -1 and errno; ELOOP: a link.
int transaction_open_for_mode(const struct transaction *transaction, const char *path);

// Stages a regular file. Returns what fill returns, or -1 and *error.
int transaction_stage(struct transaction *transaction, const char *path, int mode, workspace_fill *fill, void *data,
                      struct error *error);

struct identity transaction_identity(const struct stat *status);

enum how { EXCHANGE, MOVE, RENAME, LINK };

// One call on two names, each found anew from the root. 0, or -1 and errno.
int transaction_two_names(const struct transaction *transaction, enum how how, const char *from, const char *to);

// Where what was there is set aside on a file system that cannot exchange two names. Owned by the caller; NULL: out of
// memory.
char *transaction_second_aside(const struct change *change);

// Puts everything back, the last first; what was staged goes. Goes by what stands under the names now, so that it may
// be done twice. What could not be put back is added to the message of *error, which holds one already. 0, or -1.
int transaction_undo(struct transaction *transaction, struct error *error);

// The change stands: what was set aside goes. What cannot be removed stays under its temporary name, and harms nothing.
void transaction_sweep(struct transaction *transaction);

#endif
