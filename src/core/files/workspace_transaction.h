// SPDX-License-Identifier: Apache-2.0
// Changes several files of a workspace: all of them or none.
//
// Staged content is in temporary files. commit links what is there aside and renames them into place; if any part
// fails, it puts everything back. A link at the end of a path is not followed: the link itself is replaced or removed.
// A path is changed once.
//
// The plan, made before the first of this, says what is under which name: whoever kept it elsewhere can have the change
// undone after a crash. Names decide: what others wrote to the files in between is lost.
//
// Errors as in workspace.h and workspace_replace.h. If staging fails, what was staged before stays as it was.
#ifndef SBA_CORE_WORKSPACE_TRANSACTION_H
#define SBA_CORE_WORKSPACE_TRANSACTION_H

#include "core/files/workspace.h"
#include "core/text/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct transaction;

enum change_kind { CHANGE_NOTHING, CHANGE_PUT, CHANGE_REMOVE, CHANGE_MODE };

// What happens to one path, and what is needed to undo it.
struct change {
    char *path;  // relative, owned
    char *other; // PUT: where the new file waits; owned
    char *aside; // where the old file or link goes; NULL: there was none; owned
    enum change_kind kind;
    mode_t mode;     // MODE
    mode_t old_mode; // MODE
    size_t kept;     // PUT: so many bytes of path name directories that were there before
};

// A directory that a file replaces.
struct cleared {
    char *path; // relative, owned
    mode_t mode;
};

// What commit will do.
struct plan {
    const struct change *changes;
    size_t count;
    const struct cleared *directories; // each before those in it
    size_t directory_count;
};

// The workspace must outlive it. NULL when memory is out.
struct transaction *transaction_begin(const struct workspace *workspace);

// Undoes what was not committed, or else removes what was set aside. Frees the transaction. NULL is allowed.
void transaction_end(struct transaction *transaction);

// Stages a regular file. mode as in struct write_options.
int transaction_write(struct transaction *transaction, const char *path, const char *bytes, size_t size, int mode,
                      struct error *error);

// Stages a symbolic link. "path_escape": its target, as written, leaves the workspace.
int transaction_symlink(struct transaction *transaction, const char *path, const char *target, struct error *error);

// Stages the removal of a regular file or link, and of the directories that it leaves empty, if they can be removed.
int transaction_remove(struct transaction *transaction, const char *path, struct error *error);

// Stages permission bits, at most 0777, of a regular file.
int transaction_chmod(struct transaction *transaction, const char *path, int mode, struct error *error);

// Looks at the workspace and tells what commit will do. The plan is valid as long as the transaction. Nothing can be
// staged afterwards.
int transaction_plan(struct transaction *transaction, struct plan *plan, struct error *error);

// Commits all of it or nothing. Once; only transaction_revert and transaction_end may follow. What was there stays set
// aside until the end.
int transaction_commit(struct transaction *transaction, struct error *error);

// Takes a commit back. "incomplete": the message names each file that could not be put back, and where it is.
int transaction_revert(struct transaction *transaction, struct error *error);

// The same after a crash, with the plan of another run, as often as it takes. Or, if the change was committed, removes
// what was set aside. "incomplete" as for transaction_revert.
int transaction_recover(const struct workspace *workspace, const struct plan *plan, bool committed,
                        struct error *error);

#endif
