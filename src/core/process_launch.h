// SPDX-License-Identifier: Apache-2.0
// The launcher: a process of ours that starts the commands where the kernel confines signals (confine.h).
//
// Commands may signal each other, but not the runner. Landlock lets a process signal those of its own domain, and every
// call of confine_enter makes a new domain, which only descendants share. So one process enters it, and starts every
// command as a child of the runner. It shares the runner's memory and descriptors, as a thread does, but a command that
// ends it ends nothing else: another one takes its place.
#ifndef SBA_CORE_PROCESS_LAUNCH_H
#define SBA_CORE_PROCESS_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

// Starts the launcher if it does not run. false: it cannot be had; then commands confine themselves.
bool launch_prepare(void);

// For functions that run on a stack that the sanitizers know nothing of.
#define ON_FOREIGN_STACK __attribute__((no_sanitize("address", "undefined")))

// Gives the signals of the set their default actions.
ON_FOREIGN_STACK void launch_reset_signals(const sigset_t *set);

// Calls run(data) in a new child of this process, on a stack of its own in the same memory, and returns once the child
// has become a program or has ended; run must not return. Returns its process number, or -1 and errno.
pid_t launch(void (*run)(void *data), void *data);

// Ends the launcher, if it runs.
void launch_end(void);

#endif
