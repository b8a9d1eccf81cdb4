// SPDX-License-Identifier: Apache-2.0
// fsync by a thread of ours: a slow disk can take minutes for it, and nothing interrupts it. Who waits can give up.
//
// One at a time. Functions return 0, or -1 with errno. File systems that cannot sync have nothing to do.
#ifndef SBA_CORE_FILE_SYNC_H
#define SBA_CORE_FILE_SYNC_H

#include <stdbool.h>
#include <stdint.h>

// Starts the thread, unless it runs. Call it before the first command: the filter of commands (confine_calls.h) knows
// the threads that there are then, and what a command left may still run when the result is synced. So it is tried
// once. False: no thread was to be had (memory, processes).
bool file_sync_prepare(void);

// Begins with the file or directory, of which it keeps a descriptor of its own. EBUSY: an earlier one goes on. Without
// a thread, it syncs at once.
int file_sync_begin(int fd);

// Waits until then (clock_now) for the end of what was begun. ETIMEDOUT: it goes on.
int file_sync_wait(int64_t until);

#endif
