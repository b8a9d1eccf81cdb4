// SPDX-License-Identifier: Apache-2.0
// Atomic, durable replacement of a file, see file_replace.h.
#include "core/files/file_replace.h"

#include "core/base/cleanup.h"
#include "core/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEMPORARY_NAMES = 8, MOST_BLANKS = 64 << 20, LARGEST_ROOM = 1 << 20 };

static int sync_file(int fd)
{
    int outcome;
    do
        outcome = fsync(fd);
    while (outcome < 0 && errno == EINTR);
    // Some file systems cannot sync: then nothing more can be done.
    return outcome < 0 && (errno == EINVAL || errno == ENOTSUP) ? 0 : outcome;
}

// Says what was being written before the message of a failed write.
static int fail_write(const char *path, struct error *error)
{
    int number = error->number;
    error_clear(error);
    return error_system(error, number, "cannot write %s", path);
}

static int check_kind(int directory, const char *name, const char *path, struct error *error)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || S_ISREG(status.st_mode) ||
        S_ISLNK(status.st_mode))
        return 0;
    return error_set(error, "not_a_file", 0, "cannot replace %s: it is not a regular file", path);
}

static int create_new(int directory, const char *name)
{
    return openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

// Opens a new file ".NAME.tmp" in the directory. A kill leaves it behind, and the next run removes it.
static int open_temporary(int directory, const char *name, char **temporary)
{
    for (int i = 0; i < TEMPORARY_NAMES; i++) {
        cleanup_free char *candidate = NULL;
        int length = i ? asprintf(&candidate, ".%s.tmp%d", name, i) : asprintf(&candidate, ".%s.tmp", name);
        if (length < 0)
            return errno = ENOMEM, -1;
        int fd = create_new(directory, candidate);
        if (fd < 0 && errno == EEXIST) {
            // A killed run left it. Or it is a directory: then the next name is tried.
            unlinkat(directory, candidate, 0);
            fd = create_new(directory, candidate);
        }
        if (fd >= 0)
            *temporary = steal_pointer(&candidate);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static bool takes_no_file(int number)
{
    return number == EACCES || number == EPERM || number == EROFS;
}

// All parts as one run of whole bytes, with blanks at its end. NULL: memory is out.
static char *join(const struct iovec *parts, size_t count, size_t whole)
{
    char *bytes = malloc(whole ? whole : 1), *end = bytes;
    for (size_t i = 0; bytes && i < count; i++)
        end = (char *)mempcpy(end, parts[i].iov_base, parts[i].iov_len);
    if (bytes)
        memset(end, ' ', whole - (size_t)(end - bytes));
    return bytes;
}

// Writes the parts over the old content in one call, so that a kill after it leaves nothing of the old content behind
// them.
static int write_over(int fd, const struct iovec *parts, size_t count, size_t whole, struct error *error)
{
    char *bytes = join(parts, count, whole);
    if (!bytes)
        return file_write_parts(fd, parts, count, error);
    struct iovec all = {.iov_base = bytes, .iov_len = whole};
    int outcome = file_write_parts(fd, &all, 1, error);
    free(bytes);
    return outcome;
}

// The directory takes no new file, because of the errno refused; or nothing may take the file's place, because it is a
// mount point, or another user's in a sticky directory.
static int write_in_place(int directory, const char *name, const char *path, const struct iovec *parts, size_t count,
                          bool durable, int refused, struct error *error)
{
    size_t size = 0;
    struct stat old;
    for (size_t i = 0; i < count; i++)
        size += parts[i].iov_len;
    cleanup_fd int fd = openat(directory, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return error_system(error, errno == ENOENT ? refused : errno,
                            "user %u cannot write %s, nor put a file in its place", geteuid(), path);
    if (fstat(fd, &old) < 0)
        return error_system(error, errno, "cannot look at %s", path);
    // Reserves space first: a full disk must be found before the old content changes.
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size ? (off_t)size : 1) < 0 && errno != EOPNOTSUPP && errno != ENOSYS)
        return error_system(error, errno, "cannot write %s", path);
    size_t end = (size_t)old.st_size;
    bool hides_old = end > size && end - size <= MOST_BLANKS;
    if (write_over(fd, parts, count, hides_old ? end : size, error) < 0)
        return fail_write(path, error);
    if (ftruncate(fd, (off_t)size) < 0 || (durable && sync_file(fd) < 0))
        return error_system(error, errno, "cannot write %s", path);
    return 0;
}

// Fills the temporary file. It is renamed afterwards, so that nobody sees a part of it.
static int fill(int fd, const char *path, const struct iovec *parts, size_t count, mode_t mode, bool durable,
                struct error *error)
{
    if (file_write_parts(fd, parts, count, error) < 0)
        return fail_write(path, error);
    if (fchmod(fd, mode) < 0 || (durable && sync_file(fd) < 0))
        return error_system(error, errno, "cannot write %s", path);
    return 0;
}

// Landlock knows no chmod: a command may close the job directory, which is the one that was opened first. Its owner
// puts the bits back.
static int open_as_at_first(const char *path)
{
    static struct stat first;
    struct stat now;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && first.st_ino == 0)
        fstat(fd, &first);
    bool closed = fd < 0 ? errno == EACCES : faccessat(fd, ".", X_OK, AT_EACCESS) < 0;
    if (!closed || stat(path, &now) < 0 || now.st_dev != first.st_dev || now.st_ino != first.st_ino ||
        chmod(path, first.st_mode & 07777) < 0)
        return fd;
    cleanup_close(&fd);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_directory(const char *path, const char **name, struct error *error)
{
    const char *slash = strrchr(path, '/');
    cleanup_free char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    if (!directory)
        return error_set(error, "out_of_memory", 0, "no memory is left");
    *name = slash ? slash + 1 : path;
    if (!**name || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0)
        return error_set(error, "not_a_file", 0, "cannot replace %s: it names a directory", path);
    int fd = open_as_at_first(directory);
    if (fd < 0 && errno == EACCES)
        fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? error_system(error, errno, "cannot open the directory %s", directory) : fd;
}

int file_replace(const char *path, const struct iovec *parts, size_t count, mode_t mode, bool durable,
                 enum file_way *way, struct error *error)
{
    const char *name = NULL;
    cleanup_fd int directory = open_directory(path, &name, error);
    if (directory < 0 || check_kind(directory, name, path, error) < 0)
        return -1;
    cleanup_free char *temporary = NULL;
    cleanup_fd int fd = open_temporary(directory, name, &temporary);
    int refused = fd < 0 ? errno : 0;
    *way = takes_no_file(refused) ? FILE_IN_PLACE : FILE_RENAMED;
    if (*way == FILE_IN_PLACE)
        return write_in_place(directory, name, path, parts, count, durable, refused, error);
    if (fd < 0)
        return error_system(error, refused, "cannot create a file beside %s", path);

    if (fill(fd, path, parts, count, mode, durable, error) < 0) {
        unlinkat(directory, temporary, 0);
        return -1;
    }
    if (renameat(directory, temporary, directory, name) < 0) {
        int number = errno;
        unlinkat(directory, temporary, 0);
        if (number != EBUSY && number != EPERM)
            return error_system(error, number, "cannot replace %s", path);
        *way = FILE_IN_PLACE;
        return write_in_place(directory, name, path, parts, count, durable, number, error);
    }
    // A directory without read permission cannot be synced; the rename is done all the same.
    if (durable && sync_file(directory) < 0 && errno != EBADF)
        return error_system(error, errno, "cannot make %s durable", path);
    return 0;
}

int file_keep_room(const char *path, size_t size, struct error *error)
{
    static char zeros[LARGEST_ROOM]; // not const: that would be a megabyte of the program file
    const char *name = NULL;
    cleanup_fd int directory = open_directory(path, &name, error);
    if (directory < 0)
        return -1;
    cleanup_free char *temporary = NULL;
    cleanup_fd int fd = open_temporary(directory, name, &temporary);
    if (fd < 0)
        return error_system(error, errno, "cannot create a file beside %s", path);
    const struct iovec part = {.iov_base = zeros, .iov_len = size < LARGEST_ROOM ? size : LARGEST_ROOM};
    int outcome = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)part.iov_len);
    if (outcome < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
        return file_write_parts(fd, &part, 1, error);
    return outcome < 0 ? error_system(error, errno, "cannot keep room for %s", path) : 0;
}
