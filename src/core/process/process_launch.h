// SPDX-License-Identifier: Apache-2.0
// The launchers: threads of ours that start the commands. A thread enters the confinement of commands (confine.h,
// confine_calls.h) once, and what it starts inherits that. So the commands of one launcher share a Landlock domain and
// may signal each other, but not this process, which is outside.
#ifndef SBA_CORE_PROCESS_LAUNCH_H
#define SBA_CORE_PROCESS_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// For functions that run on a stack which the sanitizers do not know.
#define ON_FOREIGN_STACK __attribute__((no_sanitize("address", "undefined")))

struct launch {
    void (*run)(void *data); // makes only system calls, and must not return
    void *data;
    bool apart; // in a Landlock domain of its own, which run must enter (confine_enter): out of the others' reach
    int64_t
        until; // on the clock of clock_now: then, and at the deadline or a cancel, a child that was stopped is killed
};

// Calls run(data) in a new child of this process, in the same memory but on its own stack, with all signals blocked.
// Waits until the child has called exec or has ended. Returns its PID, or -1 and errno.
pid_t launch(const struct launch *launch);

#endif
