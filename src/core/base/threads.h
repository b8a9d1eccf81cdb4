// SPDX-License-Identifier: Apache-2.0
// Our threads that last. Commands must not reach them, and each has a list of children of its own in /proc.
#ifndef SBA_CORE_THREADS_H
#define SBA_CORE_THREADS_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

enum { THREADS_MOST = 8 };

// The signals of a crash, which no thread of ours blocks.
void threads_crashes(sigset_t *signals);

// Starts a thread, with all other signals blocked, that calls run(data), which must not return. Does not wait until it
// runs: to wake a processor takes longer than to start the thread. Before such a signal can reach it, *id is filled in,
// which lasts as long as the thread, or is NULL. 0, or an errno.
int threads_start(void *(*run)(void *), void *data, pid_t *id);

// Fills in their ids, the main thread's first; waits for that of a thread that has not run yet. Returns how many there
// are.
size_t threads_all(pid_t ids[THREADS_MOST]);

#endif
