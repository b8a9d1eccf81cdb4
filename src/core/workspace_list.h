// SPDX-License-Identifier: Apache-2.0
// A tree as JSON and as plain text, written during one walk.
#ifndef SBA_CORE_WORKSPACE_LIST_H
#define SBA_CORE_WORKSPACE_LIST_H

#include "core/buffer.h"
#include "core/workspace_tree.h"

enum { WORKSPACE_LIST_DEPTH = 64 }; // at most; a level takes two of JSON, and JSON readers have a limit

struct workspace_list {
    size_t max_depth, max_entries; // entries below where it starts
    size_t max_bytes;              // of the tree as JSON, with where it starts
    struct buffer *children;       // JSON: the array of what is below where it starts
    struct buffer *text;           // one line per entry, indented by its depth
    const char *cut; // the limit that ended the list: "max_depth", "max_entries", "max_bytes"; NULL: none did
};

// Writes the rest of a walk that has just given its start. Names are repaired to UTF-8 and redacted. 0 or -1.
int workspace_list(struct workspace_tree *tree, const struct workspace_tree_entry *start, struct workspace_list *list,
                   struct error *error);

// Writes permission bits as four octal digits and a NUL.
void workspace_mode_text(mode_t mode, char text[5]);

#endif
