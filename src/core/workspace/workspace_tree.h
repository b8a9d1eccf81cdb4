// SPDX-License-Identifier: Apache-2.0
// Walks a directory of a workspace: names in byte order, a directory before its entries. Links are reported, never
// followed. The number of open descriptors does not depend on the depth. Entries that vanish during the walk are
// skipped, and so are the runner's own files (own_files.h). A directory that cannot be read is reported as not entered.
#ifndef SBA_CORE_WORKSPACE_TREE_H
#define SBA_CORE_WORKSPACE_TREE_H

#include "core/workspace/workspace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workspace_tree;

struct workspace_tree_options {
    size_t max_depth; // directories at this depth are not entered; the start has depth 0
    bool hidden;      // include names that begin with a dot
    size_t max_names; // of a directory, whichever come first; 0: all
};

// Valid until the next call of workspace_tree_next.
struct workspace_tree_entry {
    const char *name; // "." for the workspace itself
    size_t depth;     // 0: where it starts
    mode_t mode;      // with the type; permission bits 0 if its directory cannot be searched
    uint64_t size;
    uint64_t inode;
    struct timespec modified, changed;
    bool entered; // a directory whose entries come next, one deeper
};

// path may name a directory, a single file or a link to one. Errors as in workspace.h; if the first directory cannot be
// read: "permission_denied". The workspace must outlive the tree. The caller closes it.
struct workspace_tree *workspace_tree_open(const struct workspace *workspace, const char *path,
                                           const struct workspace_tree_options *options, struct error *error);
void workspace_tree_close(struct workspace_tree *tree);

// 1 and *entry, 0 at the end, or -1 ("timeout", "cancelled", "out_of_memory").
int workspace_tree_next(struct workspace_tree *tree, struct workspace_tree_entry *entry, struct error *error);

// Whether names were left out because of max_names so far.
bool workspace_tree_is_cut(const struct workspace_tree *tree);

// Skips what is in the directory that *entry, the last one given, has entered.
void workspace_tree_skip(struct workspace_tree *tree, const struct workspace_tree_entry *entry);

// Of the entry last given. Its path relative to the workspace, as long as the entry lives:
const char *workspace_tree_path(const struct workspace_tree *tree);
// the target of a link, owned by the caller; NULL where it is none any more:
char *workspace_tree_target(const struct workspace_tree *tree);
// a regular file opened to read, its status in *status; -1 and errno where it cannot be, or is none any more:
int workspace_tree_open_file(const struct workspace_tree *tree, struct stat *status);
// Removes the entry if it is a temporary file that a killed run of this user left: its name is one of that run, whose
// first one is given, and it is a file with one link or a symbolic link. Whether it was removed.
bool workspace_tree_remove_temporary(const struct workspace_tree *tree, const char *first);

#endif
