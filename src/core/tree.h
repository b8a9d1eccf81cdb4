// SPDX-License-Identifier: Apache-2.0
// The processes below us. As subreaper (or PID 1) we inherit every orphan, so nothing of a job can hide; and nothing
// that is not our descendant is ever signalled: a direct child that was not reaped keeps its number, and any other is
// held by a pidfd while its parent is read again.
//
// /proc tells who descends from whom. Without it, or with that of another PID namespace, only direct children in the
// group of a command that still runs are reached, unless we are PID 1, where a signal to everyone is a signal to the
// job.
#ifndef SBA_CORE_TREE_H
#define SBA_CORE_TREE_H

#include <stdbool.h>
#include <sys/types.h>

// Sends a signal to root's descendants and to root itself, which must be a child that was not reaped; 0: to all our
// descendants. Returns how many got it.
int tree_signal(pid_t root, int number);

// Whether root (a reaped or unreaped child) has living descendants or members of its session.
bool tree_alive(pid_t root);

// Reaps the dead children that are not `spared` (0: none is). Returns how many. Never waits.
int tree_reap(pid_t spared);

// Ends all our descendants: SIGTERM, SIGKILL after grace milliseconds, until none is left. Returns how many were ended.
int tree_finish(int grace);

#endif
