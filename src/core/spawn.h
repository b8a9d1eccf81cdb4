// SPDX-License-Identifier: Apache-2.0
// Starts a command: found in its own PATH, in a session of its own, with default signals and nothing open but 0, 1
// and 2.
#ifndef SBA_CORE_SPAWN_H
#define SBA_CORE_SPAWN_H

#include "core/error.h"

#include <sys/types.h>

struct spawn_options {
    char *const *argv;        // argv[0] without a slash is looked up in PATH of environment
    char *const *environment; // "NAME=value", NULL-terminated
    int directory;            // descriptor of the working directory (O_PATH will do)
    int streams[3];           // what become 0, 1 and 2
};

// Returns the process id, which is also its session and group. Errors: "not_found", "not_executable",
// "permission_denied", "out_of_processes", "out_of_memory", "too_large" (arguments and environment), "io_error".
pid_t spawn_command(const struct spawn_options *options, struct error *error);

#endif
