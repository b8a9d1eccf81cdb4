// SPDX-License-Identifier: Apache-2.0
// The launchers: threads of ours that start the commands. A thread enters the confinement of commands (confine.h,
// confine_calls.h) once, and what it starts inherits that. So the commands of one launcher share a Landlock domain and
// may signal each other, but not this process, which is outside.
#ifndef SBA_CORE_PROCESS_LAUNCH_H
#define SBA_CORE_PROCESS_LAUNCH_H

#include "core/process/process_spawn.h"

// Executes the program in a new child of this process, by vfork, and waits until it runs. Returns its PID, or -1 and
// *failure, an errno. Not posix_spawn: musl's version waits on a pipe for exec, which costs one more sleep for each
// command. Where vfork is fork, as in qemu-user, a command that cannot start is one that exits with 127.
pid_t process_launch(const struct process_spawn *spawn, const char *path, int *failure);

#endif
