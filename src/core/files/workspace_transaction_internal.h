// SPDX-License-Identifier: Apache-2.0
// What staging (workspace_transaction.c) and committing (workspace_commit.c) share.
//
// Nothing here holds a descriptor: a patch may have more files than a process can open. Paths are resolved again each
// time, confined.
#ifndef SBA_CORE_WORKSPACE_TRANSACTION_INTERNAL_H
#define SBA_CORE_WORKSPACE_TRANSACTION_INTERNAL_H

#include "core/files/workspace_internal.h"
#include "core/files/workspace_transaction.h"

#include <sys/stat.h>

struct transaction {
    const struct workspace *workspace;
    struct change *changes; // once planned: in byte order of path
    size_t count;
    struct cleared *directories; // each before those in it
    size_t directory_count;
    enum { STAGING, PLANNED, DONE, UNDONE } state;
};

// Opens (O_PATH) the directory that holds what path names. *name, the name in it, points into path. -1 and errno.
int transaction_parent(const struct transaction *transaction, const char *path, const char **name);

// lstat of a path: 0, or -1 and errno.
int transaction_look(const struct transaction *transaction, const char *path, struct stat *status);

// Removes a file or link or, with the flag AT_REMOVEDIR, a directory. 0, or -1 and errno.
int transaction_unlink(const struct transaction *transaction, const char *path, int flags);

// Changes the mode of a file that is readable or writable. 0, or -1 and errno; ELOOP: a link.
int transaction_set_mode(const struct transaction *transaction, const char *path, mode_t mode);

// Removes what was set aside after a commit. What cannot be removed keeps its temporary name and does no harm.
void transaction_sweep(const struct transaction *transaction);

#endif
