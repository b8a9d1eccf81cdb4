// SPDX-License-Identifier: Apache-2.0
// What /proc says about a process: its state, parent, session and start. Nothing here fails.
#ifndef SBA_CORE_PROCESS_STAT_H
#define SBA_CORE_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
    char state; // as in proc_pid_stat(5)
    pid_t parent, session;
    uint64_t started; // clock ticks since the machine booted: with the PID, this names one process
};

// Whether the PIDs in /proc are valid for us: it belongs to our PID namespace.
bool process_stat_is_ours(void);

// False: there is no such process, or nothing says so.
bool process_stat_read(pid_t pid, struct process_stat *stat);

// Whether it has ended, and its parent has not asked for its status yet.
bool process_stat_is_dead(const struct process_stat *stat);

#endif
