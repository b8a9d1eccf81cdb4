// SPDX-License-Identifier: Apache-2.0
// native.root: files, a list of all files with their hashes, for artifacts.
#include "bind/bind.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "core/workspace_read.h"
#include "core/workspace_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct found {
    size_t path;                  // offset among the paths
    uint64_t size;                // as read, or according to the file system
    char sha256[TEXT_SHA256_HEX]; // empty: not read
    int problem;                  // errno, if it could not be read; 0: none; ENOENT: it is gone
};

enum {
    SMALL = 1 << 20, // bytes of a file that is read at once; larger ones are read after all small ones
    LISTING = 300,   // ms for listing after the time for reading is up
};

// The listing of files, as far as C works on it.
struct listing {
    const struct workspace *workspace;
    struct tree *tree;
    struct read_time time;
    size_t limit;
    mode_t shared;         // permission bits that every directory gets; 0: none
    char closed[PATH_MAX]; // the first directory that cannot be read; empty: none
    struct buffer *found, *paths;
};

// The paths for the comparison in qsort: the offsets point into them.
static const char *found_paths;

static int compare_paths(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    return strcmp(found_paths + a->path, found_paths + b->path);
}

static int compare_sizes(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    return a->size < b->size ? -1 : a->size > b->size;
}

// Whether an errno of opening or reading a file means that there is no such regular file any more.
static bool is_gone(int number)
{
    return number == ENOENT || number == ENOTDIR || number == ELOOP || number == EINVAL;
}

// Hashes an opened file. If it cannot be read, that is its problem: 0. -1: the listing itself fails.
static int digest(const struct listing *listing, int fd, const char *path, struct found *file, struct error *error)
{
    int outcome = workspace_digest(fd, path, &listing->time, file->sha256, &file->size, error);
    close(fd);
    if (outcome >= 0 || error->number == 0)
        return outcome < 0 ? -1 : 0;
    file->problem = error->number;
    error_clear(error);
    return 0;
}

// Gives others the permissions that they have in the directory of the artifacts, so that they can delete what is in
// this one. A directory of another user stays as it is.
static void share_directory(const struct listing *listing)
{
    struct stat status;
    int fd = workspace_resolve(listing->workspace, tree_path(listing->tree), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && (status.st_mode & listing->shared) != listing->shared)
        fchmod(fd, (status.st_mode & 07777) | listing->shared);
    close(fd);
}

// Adds the entry that the tree is at, a regular file: 0 or -1.
static int add_found(struct listing *listing, const struct tree_entry *entry, struct error *error)
{
    struct stat status;
    struct found file = {.path = listing->paths->size, .size = entry->size};
    const char *path = tree_path(listing->tree);
    if (entry->size <= SMALL && workspace_time_left(&listing->time)) {
        int fd = tree_open_file(listing->tree, &status);
        if (fd < 0 && is_gone(errno))
            return 0;
        if (fd < 0)
            file.problem = errno;
        else if (digest(listing, fd, path, &file, error) < 0)
            return -1;
    }
    if (buffer_append(listing->paths, path, strlen(path) + 1) < 0 ||
        buffer_append(listing->found, &file, sizeof file) < 0)
        return error_set(error, "out_of_memory", 0, "out of memory while listing files");
    return 0;
}

// 1: there are more than the limit, or than there was time for; 0; or -1.
static int find_files(struct listing *listing, struct error *error)
{
    const int64_t until = listing->time.until;
    struct tree_entry entry;
    int more;
    while ((more = tree_next(listing->tree, &entry, error)) > 0) {
        if (until != INT64_MAX && clock_now() >= until + LISTING)
            return 1;
        if (S_ISDIR(entry.mode) && listing->shared)
            share_directory(listing);
        if (S_ISDIR(entry.mode) && !entry.entered && !*listing->closed)
            snprintf(listing->closed, sizeof listing->closed, "%s", tree_path(listing->tree));
        if (!S_ISREG(entry.mode))
            continue;
        if (listing->found->size / sizeof(struct found) == listing->limit)
            return 1;
        if (add_found(listing, &entry, error) < 0)
            return -1;
    }
    return more;
}
static size_t count_found(const struct listing *listing, struct found **files)
{
    *files = (struct found *)(void *)listing->found->data;
    found_paths = listing->paths->data;
    return listing->found->size / sizeof **files;
}

// Reads a file that was not read yet.
static int read_found(const struct listing *listing, struct found *file, struct error *error)
{
    struct stat status;
    struct error unopened = {0};
    const char *path = found_paths + file->path;
    int fd = workspace_open_file(listing->workspace, path, &status, &unopened);
    if (fd >= 0)
        return digest(listing, fd, path, file, error);
    file->problem = is_gone(unopened.number) || !unopened.number ? ENOENT : unopened.number;
    error_clear(&unopened);
    return 0;
}

// Reads the larger files, the smallest of them first, while there is time: 0 or -1.
static int read_large(const struct listing *listing, struct error *error)
{
    struct found *files;
    size_t count = count_found(listing, &files);
    if (count)
        qsort(files, count, sizeof *files, compare_sizes);
    for (size_t i = 0; i < count && workspace_time_left(&listing->time); i++)
        if (!files[i].sha256[0] && !files[i].problem && read_found(listing, &files[i], error) < 0)
            return -1;
    return 0;
}

static void push_file(lua_State *L, const struct found *file)
{
    lua_createtable(L, 0, 3);
    bind_set_string(L, "path", found_paths + file->path);
    bind_set_integer(L, "size_bytes", (lua_Integer)file->size);
    if (file->sha256[0])
        bind_set_string(L, "sha256", file->sha256);
    if (file->problem)
        bind_set_string(L, "problem", strerror(file->problem));
}

// Pushes the list of what was found, in byte order of path.
static void push_files(lua_State *L, const struct listing *listing)
{
    struct found *files;
    size_t count = count_found(listing, &files);
    if (count)
        qsort(files, count, sizeof *files, compare_paths);
    lua_createtable(L, (int)count, 0);
    bind_push_array_metatable(L);
    lua_setmetatable(L, -2);
    for (size_t i = 0, pushed = 0; i < count; i++) {
        if (files[i].problem == ENOENT)
            continue;
        push_file(L, &files[i]);
        lua_rawseti(L, -2, (lua_Integer)++pushed);
    }
}

static int64_t check_until(lua_State *L, int index)
{
    lua_Number seconds = luaL_optnumber(L, index, HUGE_VAL);
    luaL_argcheck(L, seconds >= 0, index, "must be seconds, not negative");
    return seconds < 9e12 ? clock_now() + (int64_t)(seconds * 1000) : INT64_MAX;
}

// root:files(limit, seconds?, shared?) -> {{path=, size_bytes=, sha256=, problem=}...}, truncated, closed | nil,
// failure
int bind_root_files(lua_State *L)
{
    struct error error = {0};
    struct tree_options options = {.max_depth = SIZE_MAX, .hidden = true};
    struct listing listing = {.workspace = bind_check_root(L, 1), .time.signal = interrupt_signal()};
    lua_Integer limit = luaL_checkinteger(L, 2);
    luaL_argcheck(L, limit >= 0, 2, "must not be negative");
    listing.limit = (size_t)limit;
    listing.time.until = check_until(L, 3);
    listing.shared = (mode_t)luaL_optinteger(L, 4, 0) & 0777;
    struct tree **tree = bind_new_tree(L);
    listing.found = bind_new_buffer(L);
    listing.paths = bind_new_buffer(L);
    if (!(*tree = tree_open(listing.workspace, ".", &options, &error)))
        return bind_fail(L, &error);
    listing.tree = *tree;
    int truncated = find_files(&listing, &error);
    if (truncated < 0 || read_large(&listing, &error) < 0)
        return bind_fail(L, &error);

    push_files(L, &listing);
    lua_pushboolean(L, truncated);
    if (*listing.closed)
        lua_pushstring(L, listing.closed);
    else
        lua_pushnil(L);
    return 3;
}
