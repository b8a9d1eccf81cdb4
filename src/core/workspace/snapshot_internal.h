// SPDX-License-Identifier: Apache-2.0
// What snapshot.c and snapshot_compare.c share, and nobody else.
#ifndef SBA_CORE_SNAPSHOT_INTERNAL_H
#define SBA_CORE_SNAPSHOT_INTERNAL_H

#include "core/base/spool.h"
#include "core/workspace/ignore.h"
#include "core/workspace/snapshot.h"
#include "core/workspace/workspace_tree.h"

#define SNAPSHOT_NOT_KEPT UINT64_MAX

// What the walks meet: FILE is a regular file or a link; SNAPSHOT_LEFT_OUT what is neither that nor a directory, too.
enum snapshot_kind { SNAPSHOT_FILE_OR_LINK, SNAPSHOT_DIRECTORY, SNAPSHOT_LEFT_OUT, SNAPSHOT_CLOSED };

struct snapshot_item {
    size_t path; // offset in paths
    enum snapshot_kind kind;
    mode_t mode;
    uint64_t size, inode;
    int64_t modified, changed; // ns
    uint64_t content;          // offset in the store, or SNAPSHOT_NOT_KEPT
};

struct snapshot {
    const struct workspace *workspace;
    uint64_t most_bytes;
    char *left_out; // owned
    struct ignore ignore;
    struct buffer paths;         // NUL-terminated
    struct snapshot_item *items; // in the order of the walk
    size_t count;
    struct spool store;
    struct snapshot_change *changes;
    size_t change_count;
};

static inline const char *snapshot_path(const struct snapshot *snapshot, const struct snapshot_item *item)
{
    return snapshot->paths.data + item->path;
}

struct snapshot_item snapshot_item_of(const struct workspace_tree_entry *entry);

void snapshot_forget_changes(struct snapshot *snapshot);

struct workspace_tree *snapshot_open_tree(const struct workspace *workspace, struct error *error);

// The next entry of the walk below the workspace: 1, 0 at the end, -1. reads: also reads .gitignore files.
int snapshot_next(struct snapshot *snapshot, struct workspace_tree *tree, bool reads,
                  struct workspace_tree_entry *entry, enum snapshot_kind *kind, struct error *error);

#endif
