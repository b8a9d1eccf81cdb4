// SPDX-License-Identifier: Apache-2.0
// The seccomp filter of commands: they can neither signal this process nor change its limits or its scheduling.
//
// EPERM is the answer to signals for this process, one of its threads, its process group or everybody (-1), also for
// those that a descriptor sends to its owner; to limits of any other process; and to the scheduling of our threads, our
// group or a whole user. pidfd_send_signal is refused whatever its target, because a filter cannot see it. 32-bit
// programs have the same rules. The numbers are those of our PID namespace.
#ifndef SBA_CORE_CONFINE_CALLS_H
#define SBA_CORE_CONFINE_CALLS_H

#include <stdbool.h>

// Whether the kernel lets this process have such a filter.
bool confine_calls_known(void);

// Makes the filter, for the threads that there are now (threads.h): none may start later. Call it once. Only the dev
// build has others, in which Debian's libcurl looks names up.
void confine_calls_prepare(void);

// Puts the calling thread and what it starts under the filter for good. Makes one system call. 0, or an errno.
int confine_calls_enter(void);

#endif
