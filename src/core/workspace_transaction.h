// SPDX-License-Identifier: Apache-2.0
// A change of several files of a workspace that is all or nothing.
//
// What is staged stands in temporary files; commit renames them into place, setting aside what was there, and puts
// everything back when any part fails. Links at the end of a path are never followed here: it is the link that is
// replaced or removed. Of two changes to one path the later counts.
//
// After a crash in the middle of a commit everything is still there, in part under names that begin with ".sba-". The
// plan, made before the first rename, says under which: who keeps it elsewhere can have the change undone afterwards.
//
// Errors as in workspace.h and workspace_replace.h. Staging that failed leaves what was staged before as it was.
#ifndef SBA_CORE_WORKSPACE_TRANSACTION_H
#define SBA_CORE_WORKSPACE_TRANSACTION_H

#include "core/text.h"
#include "core/workspace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct transaction;

// Enough to tell a file from one that came to its place later. inode 0: there is none.
struct identity {
    uint64_t inode;
    int64_t size;
    int64_t mtime; // ns
};

enum change_kind { CHANGE_NOTHING, CHANGE_PUT, CHANGE_REMOVE, CHANGE_MODE };

// What is to become of one path, and all that is needed to undo it.
struct change {
    char *path;  // relative, owned
    char *other; // PUT: where the new waits, and once it is in place the old; REMOVE: where the old goes; owned
    enum change_kind kind;
    mode_t mode;            // MODE, and PUT of a regular file
    mode_t old_mode;        // MODE
    size_t kept;            // PUT: so many bytes of path name directories that were there before
    struct identity put;    // PUT
    struct identity before; // where a file or link was there
};

// A directory that goes because a file comes in its place.
struct cleared {
    char *path; // relative, owned
    mode_t mode;
};

// What commit is about to do.
struct plan {
    const struct change *changes;
    size_t count;
    const struct cleared *directories; // each before those in it
    size_t directory_count;
};

// The workspace must outlive it. NULL when memory is out.
struct transaction *transaction_begin(const struct workspace *workspace);

// Undoes what was not committed, removes what was set aside otherwise, and frees. NULL is allowed.
void transaction_end(struct transaction *transaction);

// Stages a regular file. mode as in struct write_options.
int transaction_write(struct transaction *transaction, const char *path, const char *bytes, size_t size, int mode,
                      struct error *error);

// What is to become of a text in a file.
struct replacement {
    const char *old, *new;
    size_t old_size, new_size; // old_size: at least 1
    uint64_t count;            // places: no more, no fewer, and none overlaps with another
};

// Stages an existing regular file with a text replaced, without holding it in memory. 0, and the SHA-256 of the new
// file; 1: the text is there in more or fewer places, or in some that overlap, and nothing is staged.
int transaction_replace(struct transaction *transaction, const char *path, const struct replacement *replacement,
                        char sha256[TEXT_SHA256_HEX], struct error *error);

// Stages a symbolic link; "path_escape" where the target leaves the workspace as it is written.
int transaction_symlink(struct transaction *transaction, const char *path, const char *target, struct error *error);

// Stages the removal of a regular file or link; directories that become empty by it go too, as far as they can be
// removed.
int transaction_remove(struct transaction *transaction, const char *path, struct error *error);

// Stages permission bits, at most 0777, of a regular file.
int transaction_chmod(struct transaction *transaction, const char *path, int mode, struct error *error);

// Looks at what there is, and says what commit will do, as long as the transaction lives. Nothing can be staged after.
int transaction_plan(struct transaction *transaction, struct plan *plan, struct error *error);

// Makes it all real, or nothing of it. Once; afterwards only transaction_end. What was there stays set aside until
// then.
int transaction_commit(struct transaction *transaction, struct error *error);

// Takes a commit back, as long as the transaction lives; "incomplete" says in full what it left where.
int transaction_revert(struct transaction *transaction, struct error *error);

// The same after a crash. recall takes a change or directory of another run's plan, in any order, and copies it;
// "invalid" where it is none. Then undo puts back what was there and removes what was staged; sweep, where the commit
// was complete, removes what was set aside. Both go by what stands under the names now, and leave alone what is not
// what the plan says: nobody loses by a plan that was forged. undo fails with "incomplete", and says in full what it
// left where.
int transaction_recall(struct transaction *transaction, const struct change *change, struct error *error);
int transaction_recall_directory(struct transaction *transaction, const struct cleared *directory, struct error *error);
int transaction_recover(struct transaction *transaction, bool committed, struct error *error);

#endif
