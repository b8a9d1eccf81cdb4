// SPDX-License-Identifier: Apache-2.0
// Files of the runner itself, see file.h.
#include "core/files/file.h"

#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Waits until fd can be read or was hung up; a regular file always can. -1 and *error if the job must stop first.
static int wait_readable(int fd, bool is_regular, const char *path, struct error *error)
{
    struct pollfd waits[] = {{.fd = fd, .events = POLLIN}, {.fd = interrupt_fd(), .events = POLLIN}};
    for (;;) {
        enum interrupt_reason reason = interrupt_reason();
        if (reason != INTERRUPT_NONE)
            return error_set(error, interrupt_code(reason), 0, "%s while reading %s", interrupt_message(reason), path);
        if (is_regular)
            return 0;
        int ready = poll(waits, 2, interrupt_poll_timeout(-1));
        if (ready < 0 && errno != EINTR)
            return error_system(error, errno, "cannot wait for %s", path);
        if (ready > 0 && waits[0].revents)
            return 0;
    }
}

static int64_t read_all(int fd, bool is_regular, const char *path, size_t limit, struct buffer *out,
                        struct error *error)
{
    for (int64_t began = 0;;) {
        const size_t most = limit - out->size + 1; // one byte more tells that the file is too large
        if (out->size == out->capacity && buffer_reserve(out, size_least(most, FILE_BLOCK)) < 0)
            return error_memory(error, "cannot read %s", path);
        if (wait_readable(fd, is_regular, path, error) < 0)
            return -1;
        if (out->size == 0)
            began = clock_now();
        ssize_t got = read(fd, out->data + out->size, size_least(out->capacity - out->size, most));
        if (got == 0)
            return began;
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return error_system(error, errno, "cannot read %s", path);
        out->size += (size_t)got;
        if (out->size > limit)
            return error_set(error, "too_large", 0, "%s is larger than %zu bytes", path, limit);
    }
}

int64_t file_read(const char *path, size_t limit, bool regular, struct buffer *out, struct error *error)
{
    if (strcmp(path, "-") == 0 && !regular)
        return read_all(STDIN_FILENO, false, "standard input", limit, out, error);
    // Non-blocking, so that poll waits for the writer of a FIFO: there a signal ends the wait.
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_system(error, errno, "cannot open %s", path);
    struct stat status;
    bool is_regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (regular && !is_regular)
        return error_set(error, "not_a_file", 0, "cannot read %s: it is not a regular file", path);
    if (is_regular && status.st_size && (uintmax_t)status.st_size <= limit &&
        buffer_reserve(out, (size_t)status.st_size + 1) < 0)
        return error_memory(error, "cannot read %s", path);
    return read_all(fd, is_regular, path, limit, out, error);
}

int file_write_parts(int fd, const struct parts *parts, struct text_sha256 *digest, const char *what,
                     struct error *error)
{
    struct parts left = *parts;
    static char block[FILE_BLOCK]; // larger than some stacks; only the main thread is here
    ssize_t size;
    while ((size = parts_read(&left, block, sizeof block, error)) > 0) {
        if (io_write(fd, block, (size_t)size, IO_OWN) < 0)
            return error_system(error, errno, "cannot write %s", what);
        if (digest)
            text_sha256_update(digest, block, (size_t)size);
    }
    return (int)size;
}

// Makes the directories above a path. They may exist, and be unwritable or on a read-only system.
static void make_above(char *path)
{
    for (char *slash = path + (*path == '/'); (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
}

int file_make_directory(const char *path, struct error *error)
{
    struct stat status;
    cleanup_free char *copy = strdup(path);
    if (!copy)
        return error_memory(error, "cannot create the directory %s", path);
    int number = mkdir(path, 0755) < 0 ? errno : 0;
    if (number == ENOENT) {
        make_above(copy);
        number = mkdir(path, 0755) < 0 ? errno : 0;
    }
    if (number == 0 || (stat(path, &status) == 0 && S_ISDIR(status.st_mode)))
        return 0;
    return error_system(error, number, "cannot create the directory %s", path);
}

int file_make_private_directory(const char *path, struct error *error)
{
    struct stat status;
    if (lstat(path, &status) < 0 && ((mkdir(path, 0700) < 0 && errno != EEXIST) || lstat(path, &status) < 0))
        return error_system(error, errno, "cannot create the directory %s", path);
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || status.st_mode & 077)
        return error_set(error, "permission_denied", 0, "%s is no directory, or open to other users", path);
    return 0;
}

char *file_make_temporary_directory(const char *above, struct error *error)
{
    char *path;
    if (asprintf(&path, "%s/cynode-sba-XXXXXX", above) < 0)
        return error_memory(error, "cannot create a directory in %s", above), NULL;
    if (mkdtemp(path))
        return path;
    error_system(error, errno, "cannot create a directory in %s", above);
    free(path);
    return NULL;
}

static int64_t remove_until; // for remove_one, as clock_now

// A directory that is closed to its owner is opened for the next try.
static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)where;
    if (clock_now() >= remove_until)
        return 1;
    if (kind == FTW_DNR || (remove(path) < 0 && kind == FTW_DP))
        chmod(path, S_IRWXU);
    return 0;
}

int file_remove_directory(const char *path, int64_t milliseconds, struct error *error)
{
    enum { DESCRIPTORS = 16, TRIES = 8 };
    if (rmdir(path) == 0 || errno == ENOENT)
        return 0; // mostly it is empty, or was never made
    remove_until = clock_after(clock_now(), milliseconds);
    for (int i = 0; i < TRIES; i++) {
        nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        if (access(path, F_OK) < 0 && errno == ENOENT)
            return 0;
    }
    return error_set(error, "io_error", 0, "cannot remove the directory %s and all that is in it", path);
}
