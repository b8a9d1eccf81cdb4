// SPDX-License-Identifier: Apache-2.0
// Stages, moves and removes files, see workspace_change.h.
#include "core/workspace/workspace_change.h"

#include "core/base/cleanup.h"
#include "core/workspace/own_files.h"
#include "core/workspace/workspace_directory.h"
#include "core/workspace/workspace_internal.h"
#include "core/workspace/workspace_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

// Opens the nearest directory above the relative path of a file that exists. *name is what follows it in the path.
static int open_nearest(const struct workspace *workspace, const char *relative, const char **name, const char *path,
                        struct error *error)
{
    cleanup_fd int directory = -1;
    cleanup_free char *above = workspace_split(relative, name);
    if (!above)
        return error_memory(error, "cannot change %s", path);
    if (workspace_check_name(workspace, relative, path, error) < 0)
        return -1;
    for (;;) {
        directory = workspace_resolve(workspace, above, O_PATH | O_DIRECTORY);
        char *slash = strrchr(above, '/');
        if (directory >= 0 || (errno != ENOENT && errno != ENOTDIR) || strcmp(above, ".") == 0)
            break;
        *name = slash ? relative + (slash - above) + 1 : relative;
        if (slash)
            *slash = '\0';
        else
            strcpy(above, ".");
    }
    if (directory < 0)
        return workspace_fail(error, errno, "write", path);
    if (!strchr(*name, '/') && own_files_refuse(directory, *name, path, error))
        return -1;
    return steal_fd(&directory);
}

// The path of a file that was made in the directory where the path's name would be.
static char *path_beside(const char *path, const char *name, const char *made, int directory, struct error *error)
{
    char *staged;
    if (asprintf(&staged, "%.*s%s", (int)(name - path), path, made) >= 0)
        return staged;
    unlinkat(directory, made, 0);
    error_memory(error, "cannot change %s", path);
    return NULL;
}

struct bytes {
    const char *data;
    size_t size;
    int directory;
    const char *name; // of the file that is replaced; NULL: there is none
};

static int fill_bytes(int fd, void *data, const char *path, struct error *error)
{
    const struct bytes *bytes = data;
    if (bytes->name)
        workspace_keep_attributes(fd, bytes->directory, bytes->name);
    return workspace_write_bytes(fd, bytes->data, bytes->size, NULL, path, error);
}

char *workspace_stage(const struct workspace *workspace, const char *path, const char *bytes, size_t size, int mode,
                      struct error *error)
{
    const char *name;
    char made[WORKSPACE_TEMPORARY_SIZE];
    cleanup_free char *relative = workspace_relative(workspace, path, error);
    cleanup_fd int directory = relative ? open_nearest(workspace, relative, &name, path, error) : -1;
    if (directory < 0)
        return NULL;
    struct bytes whole = {bytes, size, directory, strchr(name, '/') ? NULL : name};
    if (workspace_make_file(directory, mode, fill_bytes, &whole, path, made, error) < 0)
        return NULL;
    return path_beside(relative, name, made, directory, error);
}

// Whether a link's target, as written, stays inside. Links on its way are checked when it is followed.
static int check_target(const struct workspace *workspace, const char *relative, const char *target,
                        struct error *error)
{
    cleanup_free char *whole = NULL, *inside = NULL;
    const char *slash = strrchr(relative, '/');
    if (!*target)
        return error_set(error, "invalid", 0, "the link %s has an empty target", relative);
    if (*target == '/')
        return error_set(error, "path_escape", 0, "the link %s leads to %s: path escapes workspace", relative, target);
    if (asprintf(&whole, "%.*s%s", slash ? (int)(slash + 1 - relative) : 0, relative, target) < 0)
        return error_memory(error, "cannot change %s", relative);
    inside = workspace_relative(workspace, whole, error);
    return inside ? 0 : -1;
}

char *workspace_stage_link(const struct workspace *workspace, const char *path, const char *target, struct error *error)
{
    int outcome;
    const char *name;
    char made[WORKSPACE_TEMPORARY_SIZE];
    cleanup_free char *relative = workspace_relative(workspace, path, error);
    cleanup_fd int directory = relative ? open_nearest(workspace, relative, &name, path, error) : -1;
    if (directory < 0 || check_target(workspace, relative, target, error) < 0)
        return NULL;
    do {
        workspace_temporary_name(made);
        outcome = symlinkat(target, directory, made);
    } while (outcome < 0 && errno == EEXIST);
    if (outcome == 0)
        return path_beside(relative, name, made, directory, error);
    error_system(error, errno, "cannot make the link %s", path);
    return NULL;
}

static bool has_no_links(int number)
{
    return number == EPERM || number == EOPNOTSUPP || number == ENOSYS || number == EMLINK;
}

int workspace_move(const struct workspace *workspace, const char *from, const char *to, const char *aside,
                   struct error *error)
{
    int moved = 0;
    const char *slash = aside ? strrchr(aside, '/') : NULL, *beside = slash ? slash + 1 : aside;
    workspace_cleanup_place struct workspace_place old = {.directory = -1}, new = {.directory = -1};
    char *relative = workspace_relative(workspace, from, error);
    if (workspace_place_open(&old, workspace, relative, false, NULL, from, error) < 0)
        return -1;
    relative = workspace_relative(workspace, to, error);
    if (workspace_place_open(&new, workspace, relative, true, &old, to, error) < 0)
        return -1;
    if (aside && *beside && linkat(new.directory, new.name, new.directory, beside, 0) < 0)
        moved = has_no_links(errno) ? renameat(new.directory, new.name, new.directory, beside) : -1;
    if (moved == 0)
        moved = aside ? renameat(old.directory, old.name, new.directory, new.name)
                      : workspace_rename_new(old.directory, old.name, new.directory, new.name);
    if (moved < 0 && (errno == EXDEV || errno == EBUSY))
        return workspace_fail_mounted(error, to);
    return moved < 0 ? error_system(error, errno, "cannot move %s to %s", from, to) : 0;
}

int workspace_remove(const struct workspace *workspace, const char *path, bool directory, struct error *error)
{
    workspace_cleanup_place struct workspace_place place;
    char *relative = workspace_relative(workspace, path, error);
    if (workspace_place_open(&place, workspace, relative, false, NULL, path, error) < 0) {
        // Descriptors may have run out. Links on the way lead to nothing that has a name of ours but what we made.
        bool is_ours = place.name && workspace_made_name(place.name);
        if (!is_ours || unlinkat(workspace->fd, place.path, 0) < 0)
            return -1;
        if (error)
            error_clear(error);
        return 0;
    }
    int outcome = unlinkat(place.directory, place.name, directory ? AT_REMOVEDIR : 0);
    if (outcome < 0 && errno == EBUSY)
        return workspace_fail_mounted(error, path);
    if (outcome < 0)
        return error_system(error, errno, "cannot remove %s", path);
    return 0;
}

int workspace_make_directory(const struct workspace *workspace, const char *path, struct error *error)
{
    size_t kept;
    cleanup_free char *relative = workspace_relative(workspace, path, error);
    if (!relative)
        return -1;
    cleanup_fd int fd = workspace_make_directories(workspace, relative, &kept);
    return fd < 0 ? workspace_fail(error, errno, "create the directory", path) : 0;
}

int workspace_chmod(const struct workspace *workspace, const char *path, mode_t mode, struct error *error)
{
    enum { FLAGS = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };
    struct stat status;
    cleanup_free char *relative = workspace_relative(workspace, path, error);
    if (!relative)
        return -1;
    cleanup_fd int fd = workspace_resolve(workspace, relative, O_RDONLY | FLAGS);
    if (fd < 0 && errno == EACCES)
        fd = workspace_resolve(workspace, relative, O_WRONLY | FLAGS);
    if (fd >= 0 && fstat(fd, &status) == 0 && own_files_refuse_file(&status, path, error))
        return -1;
    return fd < 0 || fchmod(fd, mode) < 0 ? workspace_fail(error, errno, "change the mode of", path) : 0;
}
