// SPDX-License-Identifier: Apache-2.0
// Starts a command, see process_spawn.h.
#include "core/process/process_spawn.h"

#include "core/base/cleanup.h"
#include "core/process/process_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static enum kind kind_at(int directory, const char *path)
{
    struct stat status;
    if (fstatat(directory, path, &status, 0) < 0)
        return MISSING;
    if (S_ISDIR(status.st_mode))
        return DIRECTORY;
    return S_ISREG(status.st_mode) && faccessat(directory, path, X_OK, 0) == 0 ? PROGRAM : NO_PROGRAM;
}

static int refuse(const struct process_spawn *spawn, const char *code, const char *why, struct error *error)
{
    return error_set(error, code, 0, "cannot run %s: %s", spawn->argv[0], why);
}

static int not_executable(const struct process_spawn *spawn, const char *path, struct error *error)
{
    return error_set(error, "not_executable", 0,
                     "cannot run %s: %s is not executable; make it so with chmod +x, or give it to its interpreter",
                     spawn->argv[0], path);
}

// Finds the first program of that name in the directories of PATH; an empty name there is the working directory. The
// caller frees the result.
static char *search(const struct process_spawn *spawn, const char *path, struct error *error)
{
    const char *name = spawn->argv[0];
    cleanup_free char *refused = NULL;
    for (const char *directory = path; directory; directory = *directory ? directory + 1 : NULL) {
        size_t size = strcspn(directory, ":");
        char *candidate;
        if (asprintf(&candidate, "%.*s/%s", size ? (int)size : 1, size ? directory : ".", name) < 0)
            return error_memory(error, "cannot run %s", name), NULL;
        enum kind kind = kind_at(spawn->directory, candidate);
        if (kind == PROGRAM)
            return candidate;
        if (kind == NO_PROGRAM && !refused)
            refused = steal_pointer(&candidate);
        free(candidate);
        directory += size;
    }
    if (refused)
        not_executable(spawn, refused, error);
    else
        error_set(error, "not_found", 0,
                  "cannot run %s: no such command in the directories of PATH (%s); is it installed in the image, or "
                  "is a path missing, such as ./%s?",
                  name, path, name);
    return NULL;
}

char *process_spawn_find(const char *name, const char *path, struct error *error)
{
    const struct process_spawn spawn = {.argv = &name, .directory = AT_FDCWD};
    return search(&spawn, path ? path : DEFAULT_PATH, error);
}

// The path of the command. The caller frees it.
static char *locate(const struct process_spawn *spawn, struct error *error)
{
    const char *name = spawn->argv[0];
    if (!*name)
        return error_set(error, "invalid", 0, "cannot run a command without a name"), NULL;
    if (strlen(name) >= PATH_MAX)
        return error_set(error, "name_too_long", 0,
                         "cannot run %.40s...: the name is longer than %d bytes; is it a script, for shell?", name,
                         PATH_MAX - 1),
               NULL;
    if (!strchr(name, '/'))
        return search(spawn, path_of(spawn->env), error);
    char *path = strdup(name);
    if (!path)
        error_memory(error, "cannot run %s", name);
    return path;
}

// Reads the first line of a file, without the newline; empty if it cannot be read.
static void read_first_line(const struct process_spawn *spawn, const char *path, char line[FIRST_LINE])
{
    cleanup_fd int fd = openat(spawn->directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t size = fd < 0 ? 0 : read(fd, line, FIRST_LINE - 1);
    line[size > 0 ? size : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
}

// The program exists, but the kernel says ENOENT: its interpreter or loader does not.
static int explain_missing(const struct process_spawn *spawn, const char *path, struct error *error)
{
    char line[FIRST_LINE];
    if (kind_at(spawn->directory, path) == MISSING)
        return refuse(spawn, "not_found", "there is no such file (seen from the working directory)", error);
    read_first_line(spawn, path, line);
    if (strncmp(line, "#!", 2) != 0)
        return refuse(spawn, "not_found",
                      "the dynamic loader that it was built for is not in this image; was it built for another C "
                      "library or architecture?",
                      error);
    const char *interpreter = line + 2 + strspn(line + 2, " \t");
    int size = (int)strcspn(interpreter, " \t\r");
    return error_set(error, "not_found", 0,
                     "cannot run %s: the interpreter that its first line names, %.*s, does not exist%s", spawn->argv[0],
                     size, interpreter,
                     interpreter[size] == '\r' ? ": a carriage return is part of its name; convert the line ends" : "");
}

static int explain_denied(const struct process_spawn *spawn, const char *path, struct error *error)
{
    enum kind kind = kind_at(spawn->directory, path);
    if (kind == DIRECTORY)
        return refuse(spawn, "not_executable", "it is a directory", error);
    if (kind == NO_PROGRAM)
        return not_executable(spawn, path, error);
    return refuse(spawn, "permission_denied",
                  "it is marked executable, but it, its directory or its interpreter is not open to this user, or its "
                  "file system is mounted noexec",
                  error);
}

// A link of /proc says where the directory is; without /proc nothing does.
static int explain_directory(const struct process_spawn *spawn, int number, struct error *error)
{
    char link[sizeof "/proc/self/fd/" + 3 * sizeof(int)], place[PATH_MAX + 1] = " ";
    snprintf(link, sizeof link, "/proc/self/fd/%d", spawn->directory);
    ssize_t size = readlink(link, place + 1, PATH_MAX);
    return error_system(error, number, "cannot run %s: the working directory%.*s cannot be entered", spawn->argv[0],
                        size < 0 ? 0 : (int)size + 1, place);
}

static int explain(const struct process_spawn *spawn, const char *path, int number, struct error *error)
{
    if ((number == EACCES || number == ENOENT) && faccessat(spawn->directory, ".", X_OK, 0) < 0)
        return explain_directory(spawn, errno, error);
    switch (number) {
    case ENOENT:
        return explain_missing(spawn, path, error);
    case EACCES:
        return explain_denied(spawn, path, error);
    case ENOEXEC:
        return refuse(spawn, "not_executable",
                      "it is neither a program for this machine nor a script whose first line names an interpreter "
                      "(#!/bin/sh)",
                      error);
    case E2BIG:
        return refuse(spawn, "too_large",
                      "arguments and environment take more than the kernel allows, about 2 MiB in all and 128 KiB in "
                      "one; hand data over by stdin or in a file",
                      error);
    case EAGAIN:
        return refuse(spawn, "out_of_processes", "the kernel starts no further process", error);
    default:
        return error_system(error, number, "cannot run %s", spawn->argv[0]);
    }
}

pid_t process_spawn(const struct process_spawn *spawn, struct error *error)
{
    int failure = 0;
    cleanup_free char *path = locate(spawn, error);
    if (!path)
        return -1;
    pid_t pid = process_launch(spawn, path, &failure);
    return pid < 0 ? explain(spawn, path, failure, error) : pid;
}
