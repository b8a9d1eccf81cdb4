// SPDX-License-Identifier: Apache-2.0
// Our threads that last: the main one, and those that called threads_join. Commands must not reach them, and each has
// a list of children of its own in /proc. Nothing here fails.
#ifndef SBA_CORE_THREADS_H
#define SBA_CORE_THREADS_H

#include <stddef.h>
#include <sys/types.h>

enum { THREADS_MOST = 8 };

// Adds the calling thread. It must not end.
void threads_join(void);

// Fills in their ids, the main thread's first. Returns how many there are.
size_t threads_all(pid_t ids[THREADS_MOST]);

#endif
