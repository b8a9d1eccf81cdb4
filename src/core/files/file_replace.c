// SPDX-License-Identifier: Apache-2.0
// The atomic replacement of a file, see file_replace.h.
#include "core/files/file_replace.h"

#include "core/base/cleanup.h"
#include "core/base/io.h"
#include "core/files/file.h"
#include "core/files/file_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { TEMPORARY_NAMES = 8, LARGEST_ROOM = 1 << 20 };

// What may not be on the disk yet of what was replaced last: the directory; also the file, whose sync goes on; or all
// of it, because the sync of a file before it goes on, and there is one at a time.
static enum { NOTHING, DIRECTORY, FILE_GOES_ON, OLDER_GOES_ON } unsynced;

static int sync_file(int fd, int64_t until)
{
    if (until == FILE_UNSYNCED || (file_sync_begin(fd) == 0 && file_sync_wait(until) == 0))
        return 0;
    if (errno != EBUSY && errno != ETIMEDOUT)
        return -1;
    unsynced = errno == EBUSY ? OLDER_GOES_ON : FILE_GOES_ON;
    return 0;
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

// What file_keep_room made.
static void remove_room(int directory, const char *name)
{
    cleanup_free char *room = NULL;
    if (asprintf(&room, ".%s.tmp", name) >= 0)
        unlinkat(directory, room, 0);
}

static bool takes_no_file(int number)
{
    return number == EACCES || number == EPERM || number == EROFS;
}

// The directory takes no new file, because of the errno refused; or nothing may take the file's place, because it is a
// mount point, or another user's in a sticky directory.
static int write_in_place(int directory, const char *name, const char *path, const struct parts *parts, int64_t until,
                          int refused, struct error *error)
{
    off_t size = (off_t)parts_size(parts);
    cleanup_fd int fd = openat(directory, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return error_system(error, errno == ENOENT ? refused : errno,
                            "user %u cannot write %s, nor put a file in its place", geteuid(), path);
    // Reserves space first: a full disk must be found before the old content changes.
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size ? size : 1) < 0 && errno != EOPNOTSUPP && errno != ENOSYS)
        return error_system(error, errno, "cannot write %s", path);
    if (file_write_parts(fd, parts, NULL, path, error) < 0)
        return -1;
    if (ftruncate(fd, size) < 0 || sync_file(fd, until) < 0)
        return error_system(error, errno, "cannot write %s", path);
    return 0;
}

// Fills the temporary file. It is renamed afterwards, so that nobody sees a part of it.
static int fill_temporary(int fd, const char *path, const struct parts *parts, mode_t mode, int64_t until,
                          struct error *error)
{
    if (file_write_parts(fd, parts, NULL, path, error) < 0)
        return -1;
    if (fchmod(fd, mode) < 0 || sync_file(fd, until) < 0)
        return error_system(error, errno, "cannot write %s", path);
    return 0;
}

static struct file_directory kept;

int file_replace_keep(const char *path, struct file_directory *directory)
{
    struct stat status;
    if (directory->inode == 0 && stat(path, &status) < 0)
        return -1;
    if (directory->inode == 0)
        *directory = (struct file_directory){status.st_dev, status.st_ino, status.st_mode & 07777};
    kept = *directory;
    return 0;
}

// Gives the kept directory the mode that it had, if somebody closed it to its owner.
static void reopen_kept(const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0 && status.st_dev == kept.device && status.st_ino == kept.inode &&
        (kept.mode & ~status.st_mode & S_IRWXU))
        chmod(path, kept.mode);
}

// Its "." is found only where it can be searched, too.
static int open_as_kept(const char *path)
{
    cleanup_free char *inside = NULL;
    if (asprintf(&inside, "%s.", path) < 0)
        return errno = ENOMEM, -1;
    reopen_kept(path);
    return open(inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_directory(const char *path, const char **name, struct error *error)
{
    const char *slash = strrchr(path, '/');
    cleanup_free char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    if (!directory)
        return error_memory(error, "cannot write %s", path);
    *name = slash ? slash + 1 : path;
    if (!**name || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0)
        return error_set(error, "not_a_file", 0, "cannot replace %s: it names a directory", path);
    int fd = open_as_kept(directory);
    if (fd < 0 && errno == EACCES)
        fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? error_system(error, errno, "cannot open the directory %s", directory) : fd;
}

int file_replace(const char *path, const struct parts *parts, mode_t mode, int64_t until, enum file_way *way,
                 struct error *error)
{
    const char *name = NULL;
    cleanup_fd int directory = open_directory(path, &name, error);
    if (directory < 0)
        return -1;
    if (check_kind(directory, name, path, error) < 0)
        return remove_room(directory, name), -1;
    cleanup_free char *temporary = NULL;
    cleanup_fd int fd = open_temporary(directory, name, &temporary);
    int refused = fd < 0 ? errno : 0;
    *way = takes_no_file(refused) ? FILE_IN_PLACE : FILE_RENAMED;
    if (*way == FILE_IN_PLACE)
        return write_in_place(directory, name, path, parts, until, refused, error);
    if (fd < 0)
        return error_system(error, refused, "cannot create a file beside %s", path);

    if (fill_temporary(fd, path, parts, mode, until, error) < 0) {
        unlinkat(directory, temporary, 0);
        return -1;
    }
    if (renameat(directory, temporary, directory, name) < 0) {
        int number = errno;
        unlinkat(directory, temporary, 0);
        if (number != EBUSY && number != EPERM)
            return error_system(error, number, "cannot replace %s", path);
        *way = FILE_IN_PLACE;
        return write_in_place(directory, name, path, parts, until, number, error);
    }
    if (until != INT64_MAX) {
        unsynced = unsynced == NOTHING && until != FILE_UNSYNCED ? DIRECTORY : unsynced;
        return 0;
    }
    // A directory without read permission cannot be synced; the rename is done all the same.
    if (sync_file(directory, until) < 0 && errno != EBADF)
        return error_system(error, errno, "cannot make %s durable", path);
    return 0;
}

int file_replace_sync(const char *path, struct error *error)
{
    const char *name = NULL;
    if (unsynced == NOTHING)
        return 0;
    cleanup_fd int directory = open_directory(path, &name, error);
    if (directory < 0)
        return -1;
    int outcome = file_sync_wait(INT64_MAX);
    cleanup_fd int fd = -1;
    if (unsynced == OLDER_GOES_ON) {
        fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        outcome = fd < 0 ? -1 : sync_file(fd, INT64_MAX);
    }
    unsynced = NOTHING;
    if (outcome < 0 || (sync_file(directory, INT64_MAX) < 0 && errno != EBADF))
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
    size = size_least(size, LARGEST_ROOM);
    int outcome = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
    if (outcome < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
        outcome = io_write(fd, zeros, size, IO_OWN);
    return outcome < 0 ? error_system(error, errno, "cannot keep room for %s", path) : 0;
}
