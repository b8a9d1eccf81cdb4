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

// Starts a thread, with all other signals blocked, that calls run(data), which must not return; waits until it runs.
// *id is filled in before such a signal can reach it. 0, or an errno.
int threads_start(void *(*run)(void *), void *data, pid_t *id);

// Fills in their ids, the main thread's first. Returns how many there are.
size_t threads_all(pid_t ids[THREADS_MOST]);

#endif
