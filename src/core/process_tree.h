// SPDX-License-Identifier: Apache-2.0
// Ends processes with all their descendants, whatever these do: new sessions, double forks, ignored signals, endless
// forking. Only our descendants are ever signalled. The PID of a child stays valid because it is not reaped; deeper
// descendants are held by a pidfd, and their ancestry is checked after it was opened.
//
// The children lists of /proc show which processes exist. Without them (no /proc, one of another PID namespace, or a
// kernel built without the lists) a command's tree is only its process group. At the end of the job our children are
// then found by probing the PIDs since ours, one level of the tree at a time, so that a fork bomb may outrun us. As
// PID 1 nothing is weaker, because the kernel reaches all processes at once. Without pidfd_open (Linux before 5.3, some
// seccomp filters) the tree is also ended one level at a time.
//
// A process costs about 20 us. Processes that are not stopped yet use the processor meanwhile, so the time to end a
// fork bomb grows with the square of its size. As PID 1 it does not, because one call reaches all.
//
// Nothing here fails. After 5 s without progress, processes that hang in the kernel are given up.
#ifndef SBA_CORE_PROCESS_TREE_H
#define SBA_CORE_PROCESS_TREE_H

#include "core/process_children.h"

// The descendants of this process, except those that are spared.
struct tree {
    struct child *command;     // the child that somebody waits for, or NULL
    const struct pids *spared; // children to be left alone, with their descendants; NULL: none
};

// Sends SIGTERM to every process of the tree, stopped ones included. All are stopped for a moment, so that none is
// missed because its parent ends first. Returns when to kill the rest, on the clock of clock_now: normally after the
// grace period; up to half of it earlier if there are so many that killing takes time; at once if not all could be
// reached, because they use all the processor's time.
int64_t tree_terminate(const struct tree *tree, int64_t grace);

// Whether nothing of the tree is left, zombies included. Children that we may not signal do not count: a privileged
// process left them to us.
bool tree_gone(const struct tree *tree);

// Kills and reaps the tree until nothing is left. Returns how many were reaped.
size_t tree_kill(const struct tree *tree);

// tree_terminate and, after the grace period (milliseconds), tree_kill. Returns how many were reaped.
size_t tree_end(const struct tree *tree, int64_t grace);

#endif
