// SPDX-License-Identifier: Apache-2.0
// What /proc says about a process: its state, parent, session and start. Nothing here fails.
#ifndef SBA_CORE_PROCESS_STAT_H
#define SBA_CORE_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
    bool is_dead; // it has ended, and its parent has not asked for its status yet
    pid_t parent, session;
    uint64_t started; // clock ticks since the machine booted: with the PID, this names one process
};

// Whether the PIDs in /proc are valid for us: it belongs to our PID namespace.
bool process_stat_is_ours(void);

// False: there is no such process, or nothing says so.
bool process_stat_read(pid_t pid, struct process_stat *stat);

// When a process started that did so between `since`, milliseconds of CLOCK_BOOTTIME, and now. 0: nothing says so.
// Where that is one tick, /proc is not asked: of a process that it has not shown yet, that takes long.
uint64_t process_stat_started(pid_t pid, int64_t since);

#endif
