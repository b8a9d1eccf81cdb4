// SPDX-License-Identifier: Apache-2.0
// Starts commands with posix_spawn, see spawn.h.
#include "core/spawn.h"

#include "core/cleanup.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// The signals that this process ignores, which a child would inherit.
static const sigset_t *ignored_signals(void)
{
    static sigset_t ignored;
    static bool known;
    if (!known) {
        sigemptyset(&ignored);
        for (int number = 1; number < SIGRTMIN; number++) {
            struct sigaction action;
            if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
                sigaddset(&ignored, number);
        }
        known = true;
    }
    return &ignored;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigemptyset(&none);
    int failed = posix_spawnattr_setsigmask(attributes, &none);
    if (!failed)
        failed = posix_spawnattr_setsigdefault(attributes, ignored_signals());
    if (!failed)
        failed =
            posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return failed;
}

static int set_actions(posix_spawn_file_actions_t *actions, const struct spawn_options *options)
{
    int failed = posix_spawn_file_actions_addfchdir_np(actions, options->directory);
    for (int i = 0; i < 3 && !failed; i++)
        failed = posix_spawn_file_actions_adddup2(actions, options->streams[i], i);
    return failed;
}

// Starts the file at path. 0 and *pid, or an errno.
static int start(const char *path, const struct spawn_options *options, pid_t *pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    int failed = posix_spawnattr_init(&attributes);
    if (failed)
        return failed;
    failed = posix_spawn_file_actions_init(&actions);
    if (!failed) {
        failed = set_attributes(&attributes);
        if (!failed)
            failed = set_actions(&actions, options);
        if (!failed)
            failed = posix_spawn(pid, path, &actions, &attributes, options->argv, options->environment);
        posix_spawn_file_actions_destroy(&actions);
    }
    posix_spawnattr_destroy(&attributes);
    return failed;
}

static const char *path_variable(char *const *environment)
{
    for (; *environment; environment++)
        if (strncmp(*environment, "PATH=", 5) == 0 && (*environment)[5])
            return *environment + 5;
    return default_path;
}

// Tries the name in each folder of PATH. What is remembered of several failures is the one that says most.
static int start_from_path(const struct spawn_options *options, pid_t *pid, char **found)
{
    const char *path = path_variable(options->environment);
    int outcome = ENOENT;
    for (const char *end; *path; path = *end ? end + 1 : end) {
        end = strchrnul(path, ':');
        cleanup_free char *file = NULL;
        int length = (int)(end - path);
        if (asprintf(&file, "%.*s%s%s", length, path, length ? "/" : "./", options->argv[0]) < 0)
            return ENOMEM;
        if (faccessat(options->directory, file, F_OK, 0) < 0)
            continue;
        int failed = start(file, options, pid);
        if (failed == 0 || (failed != ENOENT && failed != ENOTDIR && failed != EACCES)) {
            *found = steal_pointer(&file);
            return failed;
        }
        outcome = failed;
        free(*found);
        *found = steal_pointer(&file);
    }
    return outcome;
}

static int explain_absent(const struct spawn_options *options, const char *file, struct error *error)
{
    const char *name = options->argv[0];
    if (!file)
        return error_set(error, "not_found", 0,
                         "the command %s was not found in PATH (%s); install it or give its path", name,
                         path_variable(options->environment));
    if (faccessat(options->directory, file, F_OK, 0) < 0)
        return error_set(error, "not_found", 0, "the command %s does not exist", name);
    return error_set(error, "not_found", 0,
                     "the command %s exists, but the interpreter or loader that it names does not", name);
}

static int explain_denied(const struct spawn_options *options, const char *file, struct error *error)
{
    struct stat status;
    if (fstatat(options->directory, file, &status, 0) == 0 && S_ISDIR(status.st_mode))
        return error_set(error, "not_executable", 0, "the command %s is a folder", options->argv[0]);
    return error_set(error, "permission_denied", 0,
                     "the command %s may not be executed; it or a folder above it lacks permission (chmod +x)",
                     options->argv[0]);
}

static int explain(const struct spawn_options *options, int number, const char *file, struct error *error)
{
    const char *name = options->argv[0];
    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return explain_absent(options, file, error);
    case EACCES:
        return explain_denied(options, file, error);
    case ENOEXEC:
        return error_set(
            error, "not_executable", 0,
            "the command %s is no program for this machine, and a script needs a first line like #!/bin/sh", name);
    case E2BIG:
        return error_set(error, "too_large", 0,
                         "the arguments and environment of %s are more than the kernel takes; pass them by a file",
                         name);
    case EAGAIN:
        return error_set(error, "out_of_processes", 0, "cannot start %s: no more processes are allowed", name);
    default:
        return error_system(error, number, "cannot start %s", name);
    }
}

pid_t spawn_command(const struct spawn_options *options, struct error *error)
{
    pid_t pid = -1;
    cleanup_free char *found = NULL;
    bool by_path = strchr(options->argv[0], '/') == NULL;
    if (!*options->argv[0])
        return error_set(error, "not_found", 0, "the command's name is empty");
    int failed = by_path ? start_from_path(options, &pid, &found) : start(options->argv[0], options, &pid);
    if (failed)
        return explain(options, failed, by_path ? found : options->argv[0], error);
    return pid;
}
