// SPDX-License-Identifier: Apache-2.0
// The launcher: our own process that starts the commands if the kernel confines signals (confine.h).
//
// Commands may signal each other, but not the runner. Landlock lets a process signal the processes of its own domain.
// Every call of confine_enter makes a new domain, which only descendants share. So one process, the launcher, enters it
// and starts every command as a child of the runner. It shares the runner's memory and descriptors, like a thread. If a
// command kills it, nothing else ends, and a new launcher is started.
#ifndef SBA_CORE_PROCESS_LAUNCH_H
#define SBA_CORE_PROCESS_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

// Starts the launcher if it does not run. False: it cannot be started; then commands confine themselves.
bool launch_prepare(void);

// For functions that run on a stack which the sanitizers do not know.
#define ON_FOREIGN_STACK __attribute__((no_sanitize("address", "undefined")))

// Gives the signals of the set their default actions.
ON_FOREIGN_STACK void launch_reset_signals(const sigset_t *set);

// Calls run(data) in a new child of this process, in the same memory but on its own stack. run must not return. Waits
// until the child has called exec or has ended. Returns its PID, or -1 and errno.
pid_t launch(void (*run)(void *data), void *data);

// Ends the launcher, if it runs.
void launch_end(void);

#endif
