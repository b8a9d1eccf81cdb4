// SPDX-License-Identifier: Apache-2.0
// Ends processes with all their descendants, whatever these do: new sessions, double forks, ignored signals, endless
// forking. Nothing but our descendants is signalled. What a signal misses becomes our child when its parents end, and
// is met then.
//
// Without the lists of /proc (process_children.h) a tree is the process groups of commands, and what left these lives
// on. Nothing here fails: processes that hang in the kernel are given up.
#ifndef SBA_CORE_PROCESS_TREE_H
#define SBA_CORE_PROCESS_TREE_H

#include "core/process/process_children.h"

// The descendants of this process, except those that are spared.
struct process_tree {
    const struct process_pids *spared; // children to be left alone, with their descendants; NULL: none
    int64_t until;                     // as clock_now: they are given up then, though more are ending
};

// Ends the tree: SIGTERM, and SIGCONT, to each process once; SIGKILL to what is left after the grace period, which is a
// millisecond shorter for each of them, down to half, and over if 0.5 s are not enough to reach all. Until then it
// calls wait, which reaps, and returns how many were reaped. Returns how many were reaped in all.
size_t process_tree_end(const struct process_tree *tree, int64_t grace, size_t (*wait)(void *data, int milliseconds),
                        void *data);

#endif
