// SPDX-License-Identifier: Apache-2.0
// Starts a command, see process_spawn.h.
#include "core/process/process_spawn.h"

#include "core/base/cleanup.h"
#include "core/process/confine.h"
#include "core/process/process_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum { FIRST_LINE = 256 }; // bytes of a script that the kernel looks at

static const char *path_of(const char *const *env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return DEFAULT_PATH;
}

// What a path names, seen from the working directory.
enum kind { MISSING, DIRECTORY, NO_PROGRAM, PROGRAM };

static enum kind kind_of(int directory, const char *path)
{
    struct stat status;
    if (fstatat(directory, path, &status, 0) < 0)
        return MISSING;
    if (S_ISDIR(status.st_mode))
        return DIRECTORY;
    return S_ISREG(status.st_mode) && faccessat(directory, path, X_OK, 0) == 0 ? PROGRAM : NO_PROGRAM;
}

static int out_of_memory(struct error *error)
{
    return error_set(error, "out_of_memory", 0, "out of memory while starting a command");
}

static int not_runnable(const char *name, const char *path, enum kind kind, struct error *error)
{
    if (kind == DIRECTORY)
        return error_set(error, "not_executable", 0, "cannot run %s: %s is a directory", name, path);
    return error_set(error, "not_executable", 0,
                     "cannot run %s: %s is not executable; make it so with chmod +x, or give it to its interpreter",
                     name, path);
}

// Finds the first program of that name in the directories of PATH; an empty name there is the working directory. The
// caller frees the result.
static char *search(const struct spawn *spawn, const char *path, struct error *error)
{
    const char *name = spawn->argv[0];
    cleanup_free char *refused = NULL;
    for (const char *directory = path; directory; directory = *directory ? directory + 1 : NULL) {
        size_t size = strcspn(directory, ":");
        char *candidate;
        if (asprintf(&candidate, "%.*s/%s", size ? (int)size : 1, size ? directory : ".", name) < 0) {
            out_of_memory(error);
            return NULL;
        }
        enum kind kind = kind_of(spawn->directory, candidate);
        if (kind == PROGRAM)
            return candidate;
        if (kind == NO_PROGRAM && !refused)
            refused = steal_pointer(&candidate);
        free(candidate);
        directory += size;
    }
    if (refused)
        not_runnable(name, refused, NO_PROGRAM, error);
    else
        error_set(error, "not_found", 0,
                  "cannot run %s: no such command in the directories of PATH (%s); is it installed in the image, or "
                  "is a path missing, such as ./%s?",
                  name, path, name);
    return NULL;
}

char *spawn_find(const char *name, const char *path, struct error *error)
{
    const struct spawn spawn = {.argv = &name, .directory = AT_FDCWD};
    return search(&spawn, path ? path : DEFAULT_PATH, error);
}

// The path of the command. The caller frees it.
static char *locate(const struct spawn *spawn, struct error *error)
{
    const char *name = spawn->argv[0];
    if (!*name) {
        error_set(error, "invalid", 0, "cannot run a command without a name");
        return NULL;
    }
    if (!strchr(name, '/'))
        return search(spawn, path_of(spawn->env), error);
    char *path = strdup(name);
    if (!path)
        out_of_memory(error);
    return path;
}

// Reads the first line of a file, without the newline; empty if it cannot be read.
static void read_first_line(const struct spawn *spawn, const char *path, char line[FIRST_LINE])
{
    cleanup_fd int fd = openat(spawn->directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t size = fd < 0 ? 0 : read(fd, line, FIRST_LINE - 1);
    line[size > 0 ? size : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
}

// The program exists, but the kernel says ENOENT: its interpreter or loader does not.
static int explain_missing(const struct spawn *spawn, const char *path, struct error *error)
{
    char line[FIRST_LINE];
    const char *name = spawn->argv[0];
    if (kind_of(spawn->directory, path) == MISSING)
        return error_set(error, "not_found", 0,
                         "cannot run %s: there is no such file (seen from the working directory)", name);
    read_first_line(spawn, path, line);
    if (strncmp(line, "#!", 2) != 0)
        return error_set(
            error, "not_found", 0,
            "cannot run %s: the dynamic loader that it was built for is not in this image; was it built for "
            "another C library or architecture?",
            name);
    char *interpreter = line + 2 + strspn(line + 2, " \t");
    interpreter[strcspn(interpreter, " \t")] = '\0';
    size_t size = strlen(interpreter);
    if (size && interpreter[size - 1] == '\r') {
        interpreter[size - 1] = '\0';
        return error_set(
            error, "not_found", 0,
            "cannot run %s: its first line ends in a carriage return, so that its interpreter %s is not found; "
            "convert its line ends",
            name, interpreter);
    }
    return error_set(error, "not_found", 0,
                     "cannot run %s: the interpreter that its first line names, %s, does not exist", name, interpreter);
}

static int explain_no_format(const struct spawn *spawn, const char *path, struct error *error)
{
    struct stat status;
    if (fstatat(spawn->directory, path, &status, 0) == 0 && status.st_size == 0)
        return error_set(error, "not_executable", 0, "cannot run %s: the file is empty", spawn->argv[0]);
    return error_set(error, "not_executable", 0,
                     "cannot run %s: it is neither a program for this machine nor a script whose first line names an "
                     "interpreter (#!/bin/sh)",
                     spawn->argv[0]);
}

static int explain_too_large(const struct spawn *spawn, struct error *error)
{
    size_t total = 0;
    for (const char *const *argument = spawn->argv; *argument; argument++)
        total += strlen(*argument) + 1;
    for (const char *const *variable = spawn->env; *variable; variable++)
        total += strlen(*variable) + 1;
    return error_set(
        error, "too_large", E2BIG,
        "cannot run %s: arguments and environment take %zu bytes, and the kernel takes no more than about 2 MiB "
        "in all and 128 KiB in one; hand data over by stdin or in a file",
        spawn->argv[0], total);
}

static int explain_directory(const struct spawn *spawn, int number, struct error *error)
{
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", spawn->directory);
    ssize_t size = readlink(link, path, sizeof path); // -1 without /proc
    return error_system(error, number, "cannot run %s: the working directory%s%.*s cannot be entered", spawn->argv[0],
                        size > 0 ? " " : "", size > 0 ? (int)size : 0, path);
}

static int explain(const struct spawn *spawn, const char *path, int number, struct error *error)
{
    const char *name = spawn->argv[0];
    if ((number == EACCES || number == ENOENT) && faccessat(spawn->directory, ".", X_OK, 0) < 0)
        return explain_directory(spawn, errno, error);
    enum kind kind = number == EACCES ? kind_of(spawn->directory, path) : PROGRAM;
    switch (number) {
    case ENOENT:
        return explain_missing(spawn, path, error);
    case ENOEXEC:
        return explain_no_format(spawn, path, error);
    case E2BIG:
        return explain_too_large(spawn, error);
    case EACCES:
        if (kind == DIRECTORY || kind == NO_PROGRAM)
            return not_runnable(name, path, kind, error);
        return error_set(
            error, "permission_denied", number,
            "cannot run %s, though it is marked executable: it, its directory or its interpreter is not open to "
            "this user, or its file system is mounted noexec",
            name);
    case ELOOP:
        return error_set(error, "invalid", number, "cannot run %s", name);
    case EAGAIN:
    case ENOMEM:
        return error_set(error, "out_of_processes", number, "cannot run %s: the kernel starts no further process",
                         name);
    default:
        return error_system(error, number, "cannot run %s", name);
    }
}

// The errno of the last start; 0: it succeeded. In shared memory, because vfork may be a fork.
static volatile int *failure;

// The signals that this process ignores or handles. Handlers must not run in the child, in our memory.
static sigset_t changed;

static int prepare(void)
{
    if (failure)
        return 0;
    void *page = mmap(NULL, sizeof *failure, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return -1;
    failure = page;
    sigemptyset(&changed);
    for (int number = 1; number <= SIGRTMAX; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            sigaddset(&changed, number);
    }
    return 0;
}

// What a new child needs.
struct start {
    const struct spawn *spawn;
    const char *path;
    bool confine; // it enters a domain of its own
};

ON_FOREIGN_STACK static void reset_signals(void)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&changed, number) == 1)
            sigaction(number, &standard, NULL);
}

// What the child does until exec. It runs in our memory, so it makes only system calls. Returns only an errno.
ON_FOREIGN_STACK static int exec_command(const struct start *start)
{
    sigset_t none;
    const struct spawn *spawn = start->spawn;
    reset_signals();
    sigemptyset(&none);
    setsid();
    if (fchdir(spawn->directory) < 0)
        return errno;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(spawn->standard[fd], fd) < 0)
            return errno;
    int refused = start->confine ? confine_enter() : 0;
    if (refused)
        return refused;
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(start->path, (char *const *)spawn->argv, (char *const *)spawn->env);
    return errno;
}

ON_FOREIGN_STACK static void run_child(void *start)
{
    *failure = exec_command(start);
    _exit(SPAWN_FAILED);
}

// Not posix_spawn: musl's version waits on a pipe for exec, which costs one more sleep for each command.
static pid_t start_command(const struct spawn *spawn, const char *path)
{
    if (prepare() < 0)
        return -1;
    struct start start = {spawn, path, spawn->apart && confine_is_on()};
    const struct launch request = {run_child, &start, start.confine, spawn->until};
    *failure = 0;
    pid_t pid = launch(&request);
    if (pid < 0)
        *failure = errno;
    if (pid < 0 || *failure == 0)
        return pid;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return -1;
}

pid_t spawn_command(const struct spawn *spawn, struct error *error)
{
    cleanup_free char *path = locate(spawn, error);
    if (!path)
        return -1;
    pid_t pid = start_command(spawn, path);
    return pid < 0 ? explain(spawn, path, failure ? *failure : ENOMEM, error) : pid;
}

int spawn_check(const struct spawn *spawn, struct error *error)
{
    if (*failure == 0)
        return 0;
    int number = *failure;
    cleanup_free char *path = locate(spawn, error);
    return path ? explain(spawn, path, number, error) : -1;
}
