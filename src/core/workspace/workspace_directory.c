// SPDX-License-Identifier: Apache-2.0
// Directories of a workspace and names in them, see workspace_directory.h.
#include "core/workspace/workspace_directory.h"

#include "core/base/cleanup.h"
#include "core/workspace/own_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>

char *workspace_split(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    return slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
}

int workspace_check_name(const struct workspace *workspace, const char *relative, const char *path, struct error *error)
{
    const char *slash = strrchr(relative, '/'), *name = slash ? slash + 1 : relative;
    if (*name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        return 0;
    cleanup_fd int fd = workspace_resolve(workspace, relative, O_PATH);
    if (fd < 0 && errno == EXDEV)
        return workspace_fail(error, EXDEV, "change", path);
    return error_set(error, "not_a_file", 0, "%s names a directory; expected a regular file", path);
}

// The descriptor that is there already for the directory of a place, or -1.
static int lent(const struct workspace_place *place, const struct workspace *workspace,
                const struct workspace_place *beside)
{
    if (strcmp(place->above, ".") == 0)
        return workspace->fd;
    return beside && strcmp(place->above, beside->above) == 0 ? beside->directory : -1;
}

int workspace_place_open(struct workspace_place *place, const struct workspace *workspace, char *relative, bool makes,
                         const struct workspace_place *beside, const char *path, struct error *error)
{
    *place = (struct workspace_place){.path = relative, .directory = -1};
    if (!relative)
        return -1;
    place->above = workspace_split(relative, &place->name);
    if (!place->above)
        return error_memory(error, "cannot look at %s", path);
    if (workspace_check_name(workspace, relative, path, error) < 0)
        return -1;
    place->kept = strlen(place->above);
    place->directory = lent(place, workspace, beside);
    place->is_lent = place->directory >= 0;
    if (!place->is_lent)
        place->directory = makes ? workspace_make_directories(workspace, place->above, &place->kept)
                                 : workspace_resolve(workspace, place->above, O_PATH | O_DIRECTORY);
    if (place->directory < 0)
        return workspace_fail(error, errno, makes ? "create the directory of" : "look at", path);
    return own_files_refuse(place->directory, place->name, path, error) ? -1 : 0;
}

void workspace_place_close(struct workspace_place *place)
{
    if (!place->is_lent)
        cleanup_close(&place->directory);
    free(place->path);
    free(place->above);
}

int workspace_make_directories(const struct workspace *workspace, const char *relative, size_t *kept)
{
    const char *name;
    int directory = workspace_resolve(workspace, relative, O_PATH | O_DIRECTORY);
    *kept = strcmp(relative, ".") == 0 ? 0 : strlen(relative);
    if (directory >= 0 || errno != ENOENT)
        return directory;
    cleanup_free char *above = workspace_split(relative, &name);
    cleanup_fd int parent = above ? workspace_make_directories(workspace, above, kept) : -1;
    if (parent < 0)
        return -1;
    if (mkdirat(parent, name, 0777) == 0 || errno == EEXIST)
        directory = workspace_resolve(workspace, relative, O_PATH | O_DIRECTORY);
    if (directory < 0)
        workspace_remove_directories(workspace, relative, *kept);
    return directory;
}

void workspace_remove_directories(const struct workspace *workspace, const char *relative, size_t kept)
{
    int saved = errno;
    cleanup_free char *path = strdup(relative);
    while (path && strlen(path) > kept) {
        const char *name;
        cleanup_free char *above = workspace_split(path, &name);
        cleanup_fd int directory = above ? workspace_resolve(workspace, above, O_PATH | O_DIRECTORY) : -1;
        if (directory < 0 || (unlinkat(directory, name, AT_REMOVEDIR) < 0 && errno != ENOENT))
            break;
        path[name > path ? name - path - 1 : 0] = '\0';
    }
    errno = saved;
}

static uint64_t first_made, next; // numbers of this run's temporary names

void workspace_temporary_name(char name[WORKSPACE_TEMPORARY_SIZE])
{
    // Counts from a random start, and so each run has names of its own. If one exists already, O_EXCL notices.
    while (next == 0 && getrandom(&next, sizeof next, 0) < 0 && errno == EINTR)
        continue;
    if (first_made == 0)
        first_made = next;
    snprintf(name, WORKSPACE_TEMPORARY_SIZE, ".sba-%016" PRIx64, next++);
}

static bool parse_temporary_name(const char *name, uint64_t *number)
{
    enum { PREFIX = sizeof ".sba-" - 1, DIGITS = WORKSPACE_TEMPORARY_SIZE - 1 - PREFIX };
    bool is_one = strlen(name) == PREFIX + DIGITS && strncmp(name, ".sba-", PREFIX) == 0 &&
                  strspn(name + PREFIX, "0123456789abcdef") == DIGITS;
    *number = is_one ? strtoull(name + PREFIX, NULL, 16) : 0;
    return is_one;
}

bool workspace_made_name(const char *name)
{
    uint64_t number;
    return parse_temporary_name(name, &number) && number - first_made < next - first_made;
}

bool workspace_is_temporary_name(const char *name, const char *first)
{
    enum { MOST = 1 << 24 }; // files that a run may make
    uint64_t number, from;
    return parse_temporary_name(name, &number) && parse_temporary_name(first, &from) && number - from < MOST;
}

int workspace_make_file(int directory, int mode, workspace_fill *fill, void *data, const char *path,
                        char name[WORKSPACE_TEMPORARY_SIZE], struct error *error)
{
    cleanup_fd int fd = -1;
    do {
        workspace_temporary_name(name);
        fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode < 0 ? 0644 : 0600);
    } while (fd < 0 && (errno == EEXIST || errno == EINTR));
    if (fd < 0)
        return error_system(error, errno, "cannot make a new file for %s", path);
    int outcome = fill(fd, data, path, error);
    if (outcome == 0 && mode >= 0 && fchmod(fd, (mode_t)mode) < 0)
        outcome = error_system(error, errno, "cannot write %s", path);
    if (outcome < 0)
        unlinkat(directory, name, 0);
    return outcome;
}

int workspace_rename_new(int from_directory, const char *from, int to_directory, const char *to)
{
    struct stat status;
    if (syscall(SYS_renameat2, from_directory, from, to_directory, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    // The file system does not know the flag: all that is left is to look before the rename.
    if (fstatat(to_directory, to, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return errno = EEXIST, -1;
    return errno == ENOENT ? renameat(from_directory, from, to_directory, to) : -1;
}
