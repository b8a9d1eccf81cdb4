// SPDX-License-Identifier: Apache-2.0
// Tells what has changed in a workspace since a snapshot: regular files and symbolic links.
//
// A file with the same size, times and inode counts as unchanged. The content of every file is kept in a store, up to a
// bound. Left out: everything named .git, what the .gitignore files ignored at the beginning, and one path of the
// caller's; devices, sockets and FIFOs. Errors as in workspace.h, and "timeout", "cancelled", "out_of_memory",
// "no_space".
#ifndef SBA_CORE_SNAPSHOT_H
#define SBA_CORE_SNAPSHOT_H

#include "core/base/buffer.h"
#include "core/workspace/workspace.h"

#include <stdbool.h>
#include <stdint.h>

struct snapshot;

struct snapshot_options {
    const char *directory; // for the store, a file without a name
    uint64_t most_bytes;   // that the store may hold
    const char *left_out;  // relative path; NULL: none
};

// Keeps what the workspace is now. The caller frees it, before the workspace.
struct snapshot *snapshot_take(const struct workspace *workspace, const struct snapshot_options *options,
                               struct error *error);
void snapshot_free(struct snapshot *snapshot);

enum snapshot_action {
    SNAPSHOT_CREATED,
    SNAPSHOT_MODIFIED,
    SNAPSHOT_DELETED,
    SNAPSHOT_MODE_CHANGED, // and nothing else
    SNAPSHOT_TYPE_CHANGED, // a file became a link, or a link a file
    SNAPSHOT_UNREADABLE,   // a file or directory that could not be read, then or now: it may have changed
};

// One side of a change. mode 0: there was nothing.
struct snapshot_side {
    mode_t mode; // with the type
    uint64_t size;
};

struct snapshot_change {
    char *path; // relative; the snapshot's
    enum snapshot_action action;
    struct snapshot_side before, after;
    size_t original; // for snapshot_content; 0: what was before was not kept
    bool blocked;    // CREATED: something that is no file, or was left out, was there: a patch cannot make room
};

// Compares with the workspace as it is now. *changes, in the order of a walk, is owned by the snapshot. Returns how
// many, or -1.
long snapshot_compare(struct snapshot *snapshot, const struct snapshot_change **changes, struct error *error);

// Appends what a changed file was before, or a link's target. 0 or -1.
int snapshot_content(const struct snapshot *snapshot, size_t original, struct buffer *content, struct error *error);

#endif
