// SPDX-License-Identifier: Apache-2.0
// A change of several files of a workspace that is all or nothing.
//
// What is staged stands in temporary files; commit renames them into place, setting aside what was there, and puts
// everything back when any part fails. Links at the end of a path are never followed here: it is the link that is
// replaced or removed. Of two changes to one path the later counts. A crash in the middle of commit can leave part of
// the change done; what was there before is then still there, under names that begin with ".sba-".
//
// Errors as in workspace.h and workspace_replace.h. Staging that failed leaves what was staged before as it was.
#ifndef SBA_CORE_WORKSPACE_TRANSACTION_H
#define SBA_CORE_WORKSPACE_TRANSACTION_H

#include "core/workspace.h"

#include <stddef.h>

struct transaction;

// The workspace must outlive it. NULL when memory is out.
struct transaction *transaction_begin(const struct workspace *workspace);

// Undoes what was not committed, and frees. NULL is allowed.
void transaction_end(struct transaction *transaction);

// Stages a regular file. mode as in struct write_options.
int transaction_write(struct transaction *transaction, const char *path, const char *bytes, size_t size, int mode,
                      struct error *error);

// Stages a symbolic link; "path_escape" where the target leaves the workspace as it is written.
int transaction_symlink(struct transaction *transaction, const char *path, const char *target, struct error *error);

// Stages the removal of a regular file or link; folders that become empty by it go too, as far as they can be removed.
int transaction_remove(struct transaction *transaction, const char *path, struct error *error);

// Stages permission bits, at most 0777, of a regular file.
int transaction_chmod(struct transaction *transaction, const char *path, int mode, struct error *error);

// Makes it all real, or nothing of it. Once; afterwards only transaction_end.
int transaction_commit(struct transaction *transaction, struct error *error);

#endif
