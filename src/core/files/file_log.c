// SPDX-License-Identifier: Apache-2.0
// A file to which lines are appended, see file_log.h.
#include "core/files/file_log.h"

#include "core/base/cleanup.h"
#include "core/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_regular(struct file_log *log, const char *path, int flags, struct error *error)
{
    cleanup_fd int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
    struct stat status;
    if (fd < 0 && errno != ELOOP && errno != EISDIR && errno != ENXIO)
        return error_system(error, errno, "cannot open %s", path);
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return error_set(error, "not_a_file", 0, "%s is not a regular file", path);
    *log = (struct file_log){.fd = steal_fd(&fd)};
    return 0;
}

int file_log_open(struct file_log *log, const char *path, bool create, struct error *error)
{
    return open_regular(log, path, O_RDWR | O_APPEND | O_NOFOLLOW | (create ? O_CREAT : 0), error);
}

int file_log_open_to_read(struct file_log *log, const char *path, struct error *error)
{
    return open_regular(log, path, O_RDONLY, error);
}

int file_log_open_memory(struct file_log *log, struct error *error)
{
    *log = (struct file_log){.fd = memfd_create("journal", MFD_CLOEXEC)};
    if (log->fd < 0 || fcntl(log->fd, F_SETFL, O_APPEND) < 0)
        return error_system(error, errno, "cannot keep a file in memory");
    return 0;
}

// What a killed runner left may still hold the lock for a moment.
int file_log_lock(struct file_log *log, struct error *error)
{
    const int tries = 50, pause = 10; // ms
    for (int i = 0; flock(log->fd, LOCK_EX | LOCK_NB) < 0; i++) {
        if (errno != EWOULDBLOCK)
            return error_system(error, errno, "cannot lock the journal");
        if (i == tries)
            return error_set(error, "locked", 0, "the journal is locked");
        poll(NULL, 0, pause);
    }
    return 0;
}

bool file_log_is_locked(const char *path)
{
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

int file_log_cut(struct file_log *log, int64_t size, struct error *error)
{
    if (ftruncate(log->fd, size) < 0)
        return error_system(error, errno, "cannot cut the journal");
    log->size = size;
    log->digest = log->lines;
    if (size == 0)
        text_sha256_init(&log->digest);
    return 0;
}

int64_t file_log_append(struct file_log *log, const struct parts *parts, bool goes_on, struct error *error)
{
    if (file_write_parts(log->fd, parts, log->guarded ? &log->digest : NULL, "the journal", error) < 0)
        return -1;
    if (!goes_on)
        log->lines = log->digest;
    return log->size += (int64_t)parts_size(parts);
}

static ssize_t read_at(const struct file_log *log, char *to, size_t size, int64_t at, struct error *error)
{
    ssize_t got = io_read(log->fd, to, size, (off_t)at);
    return got < 0 ? error_system(error, errno, "cannot read the journal") : got;
}

int64_t file_log_line(const struct file_log *log, int64_t at, size_t most, struct buffer *head, bool *is_whole,
                      struct error *error)
{
    enum { FIRST = 4096 };         // most lines are short
    static char block[FILE_BLOCK]; // as in file_write_parts
    int64_t size = 0;
    for (*is_whole = false; !*is_whole;) {
        ssize_t got = read_at(log, block, size ? sizeof block : FIRST, at + size, error);
        if (got <= 0)
            return got < 0 ? -1 : size;
        const char *newline = memchr(block, '\n', (size_t)got);
        size_t part = newline ? (size_t)(newline - block) : (size_t)got, room = most - head->size;
        if (memchr(block, '\0', part))
            return error_set(error, "invalid_json", 0, "the journal has a line with a NUL, which is no JSON");
        if (buffer_append(head, block, size_least(part, room)) < 0)
            return error_memory(error, "cannot read the journal");
        *is_whole = newline != NULL;
        size += (int64_t)part + *is_whole;
    }
    return size;
}

static int digest_all(const struct file_log *log, struct text_sha256 *digest, struct error *error)
{
    static char block[FILE_BLOCK]; // as in file_write_parts
    ssize_t got;
    text_sha256_init(digest);
    for (off_t at = 0; (got = read_at(log, block, sizeof block, at, error)) > 0; at += got)
        text_sha256_update(digest, block, (size_t)got);
    return (int)got;
}

int file_log_guard(struct file_log *log, struct error *error)
{
    int outcome = digest_all(log, &log->digest, error);
    log->guarded = outcome == 0;
    log->lines = log->digest;
    return outcome;
}

bool file_log_is_unchanged(const struct file_log *log)
{
    struct text_sha256 written = log->digest, there;
    char one[TEXT_SHA256_HEX], other[TEXT_SHA256_HEX];
    struct stat status;
    if (!log->guarded)
        return true;
    // A command may have made it as large as it liked: no more is read than was written.
    if (fstat(log->fd, &status) == 0 && status.st_size != log->size)
        return false;
    if (digest_all(log, &there, NULL) < 0)
        return true;
    text_sha256_final(&written, one);
    text_sha256_final(&there, other);
    return strcmp(one, other) == 0;
}
