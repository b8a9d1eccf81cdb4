// SPDX-License-Identifier: Apache-2.0
// Ending processes with all their descendants, whatever those do: new sessions, double forks, ignored signals, forking
// without end. No process that is not a descendant of ours is ever signalled: our own children are held by
// not being reaped, those below them by a pidfd whose ancestry is looked at after it was opened.
//
// The lists of /proc show who is there. What is weaker without them (no /proc, one of another PID namespace, or a
// kernel built without the lists): the tree of a command is its process group only; and at the end of the job our
// children are found by asking about the numbers since ours, a level of the tree at a time, so that a fork bomb may
// outrun us. As PID 1 the kernel reaches all at once and nothing is weaker. Without pidfd_open (Linux before 5.3, some
// seccomp filters) the tree is ended a level at a time too.
//
// How long it takes: a process costs us some 20 us, and those that are not stopped yet take their share of the time
// meanwhile: to end a fork bomb takes time that grows with the square of its number of processes. As PID 1 it does not,
// for one call reaches them all.
//
// Nothing here fails; what cannot be ended (asleep in the kernel for good) is given up after 5 s without any progress.
#ifndef SBA_CORE_PROCESS_TREE_H
#define SBA_CORE_PROCESS_TREE_H

#include "core/process_children.h"

// Which processes: the descendants of this one, but for what is spared.
struct tree {
    struct child *command;     // the one somebody waits for, or NULL
    const struct pids *spared; // children that are left alone, with all below them; NULL: none, the tree is everything
};

// Asks the tree to end: SIGTERM to every process of it, stopped ones too. All are stopped for a moment, so that none is
// missed because its parent ends before it is reached. Returns when what is left is to be killed, on the clock of
// clock_now: after so many milliseconds; sooner, at most by half, where there are so many that their death takes
// its time; at once where not all could be told, because they take all the time there is.
int64_t tree_terminate(const struct tree *tree, int64_t grace);

// Whether nothing of the tree is left, zombies included, but for children that we may not signal: somebody with more
// rights left them to us, and they are none of the tree.
bool tree_gone(const struct tree *tree);

// Ends and reaps the tree: SIGKILL, until nothing is left. Returns how many were reaped.
size_t tree_kill(const struct tree *tree);

// The one, and after the grace (milliseconds) the other for what is left. Returns how many were reaped.
size_t tree_end(const struct tree *tree, int64_t grace);

#endif
