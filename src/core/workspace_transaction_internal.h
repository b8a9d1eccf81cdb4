// SPDX-License-Identifier: Apache-2.0
// What staging (workspace_transaction.c) and committing (workspace_commit.c) share.
//
// Nothing here holds a descriptor: a patch may have more files than a process may have open. Paths are resolved anew,
// confined, each time.
#ifndef SBA_CORE_WORKSPACE_TRANSACTION_INTERNAL_H
#define SBA_CORE_WORKSPACE_TRANSACTION_INTERNAL_H

#include "core/workspace_internal.h"
#include "core/workspace_transaction.h"

enum change_kind { CHANGE_NOTHING, CHANGE_PUT, CHANGE_REMOVE, CHANGE_MODE };

struct change {
    char *path;   // relative, owned
    char *staged; // PUT: path of the temporary file or link, owned; NULL once it is in place
    enum change_kind kind;
    mode_t mode; // MODE, and PUT of a regular file
};

// How to undo one thing that commit did.
struct undo {
    enum { UNDO_EXCHANGE, UNDO_MOVE, UNDO_RENAME, UNDO_FOLDERS, UNDO_RMDIR, UNDO_MODE } what;
    char *path;        // what was changed, owned
    char *other;       // EXCHANGE, MOVE, RENAME: the other name, owned
    const char *aside; // path or other, where what was there waits under it; NULL: nothing waits
    size_t kept;       // FOLDERS
    mode_t mode;       // RMDIR, MODE: as it was
};

struct transaction {
    const struct workspace *workspace;
    struct change *changes; // in byte order of path
    size_t count, capacity;
    struct undo *undos;
    size_t undo_count, undo_capacity;
};

// The folder that holds what path names, open (O_PATH), and the name in it, which points into path. -1 and errno.
int transaction_parent(const struct transaction *transaction, const char *path, const char **name);

// lstat of a path: 0, or -1 and errno.
int transaction_look(const struct transaction *transaction, const char *path, struct stat *status);

// The path of a new temporary name in the folder that holds path. Owned by the caller; NULL: out of memory.
char *transaction_aside(const char *path);

// Where among the changes that of a path is, or is to be inserted.
size_t transaction_find(const struct transaction *transaction, const char *path, bool *found);

// Opens a file to change its mode: it need be only readable or only writable. -1 and errno; ELOOP: a link.
int transaction_open_for_mode(const struct transaction *transaction, const char *path);

#endif
