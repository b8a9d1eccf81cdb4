// SPDX-License-Identifier: Apache-2.0
// Starting a command, as cheaply as vfork does it: in a session of its own, with no signal blocked or ignored.
// Descriptors of ours are close-on-exec.
#ifndef SBA_CORE_PROCESS_SPAWN_H
#define SBA_CORE_PROCESS_SPAWN_H

#include "core/error.h"

#include <sys/types.h>

struct spawn {
    const char *const *argv; // NULL at the end; argv[0] is looked up in PATH of env unless it holds a slash
    const char *const *env;  // "NAME=value", NULL at the end
    int directory;           // the working directory; O_PATH will do
    int standard[3];         // what becomes 0, 1 and 2; each from 3 up
};

// Starts it. Returns its process number, which is its session's and its process group's too. The caller reaps.
// Errors, with what would help: "not_found" (the command, a script's interpreter, a program's loader),
// "not_executable", "permission_denied", "too_large" (arguments and environment), "out_of_processes", "invalid", ...
pid_t spawn_command(const struct spawn *spawn, struct error *error);

// The first program of that name (without a slash) in the directories of a PATH; NULL: the PATH that commands have
// without one. Runs nothing. Owned by the caller; NULL and "not_found", "not_executable", "out_of_memory".
char *spawn_find(const char *name, const char *path, struct error *error);

// Where vfork is made of fork, as qemu's emulation of a process has it, a failure is known only once the command has
// ended with SPAWN_FAILED. 0: it ran. -1: it could not be started, errors as above.
enum { SPAWN_FAILED = 127 };
int spawn_check(const struct spawn *spawn, struct error *error);

#endif
