// SPDX-License-Identifier: Apache-2.0
// The runner's own files, see own_files.h.
#include "core/workspace/own_files.h"

#include "core/base/buffer.h"
#include "core/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct own_file {
    char *above;   // the path of its directory, as it was given
    int directory; // O_PATH; that of another one, where they have the same path
    struct stat status;
    char *name;
};

static struct own_file *files;
static size_t count;

// Mostly all are in one directory.
static int open_directory(struct own_file *file)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(files[i].above, file->above) == 0) {
            file->directory = files[i].directory;
            file->status = files[i].status;
            return 0;
        }
    file->directory = open(file->above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return file->directory < 0 ? -1 : fstat(file->directory, &file->status);
}

int own_files_add(const char *path, struct error *error)
{
    const char *slash = strrchr(path, '/');
    struct own_file *grown = array_grow(files, count, sizeof *files), file = {.directory = -1};
    file.above = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup(".");
    file.name = strdup(slash ? slash + 1 : path);
    if (grown)
        files = grown;
    if (file.above && grown && file.name && open_directory(&file) == 0) {
        files[count++] = file;
        return 0;
    }
    error_system(error, errno, "cannot open the directory of %s", path);
    cleanup_close(&file.directory);
    free(file.above);
    free(file.name);
    return -1;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

// Whether it is the name of the file or of a temporary one that is to replace it.
static bool fits(const char *name, const char *own)
{
    size_t size = strlen(own);
    return strcmp(name, own) == 0 ||
           (*name == '.' && strncmp(name + 1, own, size) == 0 && strncmp(name + 1 + size, ".tmp", 4) == 0);
}

bool own_files_named(int directory, const char *name)
{
    struct stat status;
    for (size_t i = 0; i < count; i++)
        if (fits(name, files[i].name) && fstat(directory, &status) == 0 && is_same(&files[i].status, &status))
            return true;
    return false;
}

static bool refuse(const char *path, struct error *error)
{
    error_set(error, "permission_denied", 0, "%s is a file of the runner, written by the runner alone", path);
    return true;
}

bool own_files_refuse(int directory, const char *name, const char *path, struct error *error)
{
    return own_files_named(directory, name) && refuse(path, error);
}

bool own_files_refuse_file(const struct stat *file, const char *path, struct error *error)
{
    struct stat status;
    for (size_t i = 0; i < count; i++)
        if (fstatat(files[i].directory, files[i].name, &status, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&status, file))
            return refuse(path, error);
    return false;
}
