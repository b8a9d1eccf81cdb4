// SPDX-License-Identifier: Apache-2.0
// Starts a command by a launcher (process_launch.h), in a session of its own, with no signal blocked or ignored. All
// our descriptors must be close-on-exec.
#ifndef SBA_CORE_PROCESS_SPAWN_H
#define SBA_CORE_PROCESS_SPAWN_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_spawn {
    const char *const *argv; // NULL at the end; argv[0] is looked up in PATH of env unless it holds a slash
    const char *const *env;  // "NAME=value", NULL at the end
    int directory;           // the working directory; O_PATH is enough
    int standard[3];         // become descriptors 0, 1 and 2; each must be at least 3
    int script;              // becomes descriptor 3; must be at least that; 0: none
    bool apart;              // in a Landlock domain of its own, out of the others' reach
    int64_t until;           // of clock_now: then, and at the deadline or a cancel, a child that is stopped is killed
};

// Starts it. Returns its PID, which is also its session and process group. The caller reaps it. Errors, with advice:
// "not_found" (the command, a script's interpreter, a program's loader), "not_executable", "permission_denied",
// "too_large" (arguments and environment), "out_of_processes", "invalid", ...
pid_t process_spawn(const struct process_spawn *spawn, struct error *error);

// Finds the first program of that name (without a slash) in the directories of a PATH; NULL: the default PATH. The
// caller frees the result. NULL and "not_found", "not_executable", "out_of_memory".
char *process_spawn_find(const char *name, const char *path, struct error *error);

#endif
