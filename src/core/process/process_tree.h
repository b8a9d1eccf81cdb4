// SPDX-License-Identifier: Apache-2.0
// Ends processes with all their descendants, whatever these do: new sessions, double forks, ignored signals, endless
// forking. Only our descendants are ever signalled. The PID of a child stays valid because it is not reaped; deeper
// descendants are held by a pidfd, and their ancestry is checked after it was opened.
//
// The children lists of /proc show which processes exist. Without them (no /proc, one of another PID namespace, or a
// kernel built without the lists) a tree is the process groups of commands, and what left these lives on. As PID 1
// nothing is weaker, because the kernel reaches all processes at once. Without pidfd_open (Linux before 5.3, some
// seccomp filters) the tree is ended one level at a time.
//
// Nothing here fails. After 5 s without progress, processes that hang in the kernel are given up.
#ifndef SBA_CORE_PROCESS_TREE_H
#define SBA_CORE_PROCESS_TREE_H

#include "core/process/process_children.h"

// The descendants of this process, except those that are spared.
struct tree {
    struct child *command;     // the child that somebody waits for, or NULL
    const struct pids *spared; // children to be left alone, with their descendants; NULL: none
    struct pids asked;         // those that got SIGTERM
    bool all_asked;            // they got it together
};

// A command has been started: without /proc, its process group is remembered.
void tree_began(pid_t command);

// Sends SIGTERM, and SIGCONT, to what has not got it yet. Call it again when children have ended: those of the dead are
// ours now. Returns when, after the first call, to kill the rest: after the grace period, down to half of it if there
// are so many that their deaths take time, or at once if not all could be reached, because they use all the processor's
// time.
int64_t tree_terminate(struct tree *tree, int64_t grace);

// Whether nothing of the tree is left, zombies included. Children that we may not signal do not count: a privileged
// process left them to us.
bool tree_gone(const struct tree *tree);

// Kills and reaps the tree until nothing is left. Returns how many were reaped.
size_t tree_kill(const struct tree *tree);

// tree_terminate and, after the grace period (milliseconds), tree_kill. Returns how many were reaped.
size_t tree_end(struct tree *tree, int64_t grace);

void tree_free(struct tree *tree);

#endif
