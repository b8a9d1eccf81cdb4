// SPDX-License-Identifier: Apache-2.0
// native.folder: files, the list of all that are below it with their hashes, for artifacts.
#include "bind/bind.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "core/workspace_read.h"
#include "core/workspace_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct found {
    size_t path;                  // offset among the paths
    uint64_t size;                // as read, or as the file system says
    char sha256[TEXT_SHA256_HEX]; // empty: not read
    bool unreadable;
};

enum {
    SMALL = 1 << 20, // bytes of a file that is read when it is met; what is larger waits until all small ones are read
    LISTING = 300,   // ms for listing after the time for reading is up
};

// The listing of files: what of it C works on.
struct listing {
    const struct workspace *workspace;
    struct tree *tree;
    struct read_time time;
    size_t limit;
    struct buffer *found, *paths;
};

// What qsort compares by: the paths that the offsets are in.
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

// Adds the entry that the tree is at, if it is a regular file that can be read: 0 or -1.
static int add_found(struct listing *listing, const struct tree_entry *entry, struct error *error)
{
    struct stat status;
    struct found file = {.path = listing->paths->size, .size = entry->size};
    const char *path = tree_path(listing->tree);
    if (entry->size <= SMALL && workspace_time_left(&listing->time)) {
        int fd = tree_open_file(listing->tree, &status);
        if (fd < 0)
            return 0;
        int outcome = workspace_digest(fd, path, &listing->time, file.sha256, &file.size, error);
        close(fd);
        if (outcome < 0)
            return -1;
    }
    if (buffer_append(listing->paths, path, strlen(path) + 1) < 0 ||
        buffer_append(listing->found, &file, sizeof file) < 0)
        return error_set(error, "out_of_memory", 0, "out of memory while listing files");
    return 0;
}

// 1 where there are more than the limit, or than there was time for, else 0, or -1.
static int find_files(struct listing *listing, struct error *error)
{
    const int64_t until = listing->time.until;
    struct tree_entry entry;
    int more;
    while ((more = tree_next(listing->tree, &entry, error)) > 0) {
        if (until != INT64_MAX && interrupt_now() >= until + LISTING)
            return 1;
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

// Reads one that was not read yet. What cannot be opened is none.
static int read_found(const struct listing *listing, struct found *file, struct error *error)
{
    struct stat status;
    struct error unused = {0};
    const char *path = found_paths + file->path;
    int fd = workspace_open_file(listing->workspace, path, &status, &unused);
    if (fd < 0) {
        error_clear(&unused);
        file->unreadable = true;
        return 0;
    }
    int outcome = workspace_digest(fd, path, &listing->time, file->sha256, &file->size, error);
    close(fd);
    return outcome;
}

// Reads the larger ones, the smallest of them first, as long as there is time: 0 or -1.
static int read_large(const struct listing *listing, struct error *error)
{
    struct found *files;
    size_t count = count_found(listing, &files);
    if (count)
        qsort(files, count, sizeof *files, compare_sizes);
    for (size_t i = 0; i < count && workspace_time_left(&listing->time); i++)
        if (!files[i].sha256[0] && read_found(listing, &files[i], error) < 0)
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
        if (files[i].unreadable)
            continue;
        push_file(L, &files[i]);
        lua_rawseti(L, -2, (lua_Integer)++pushed);
    }
}

static int64_t check_until(lua_State *L, int index)
{
    lua_Number seconds = luaL_optnumber(L, index, HUGE_VAL);
    luaL_argcheck(L, seconds >= 0, index, "must be seconds, not negative");
    return seconds < 9e12 ? interrupt_now() + (int64_t)(seconds * 1000) : INT64_MAX;
}

// folder:files(limit, seconds?) -> {{path=, size_bytes=, sha256=}...}, truncated | nil, failure
int bind_folder_files(lua_State *L)
{
    struct error error = {0};
    struct tree_options options = {.max_depth = SIZE_MAX, .hidden = true};
    struct listing listing = {.workspace = bind_check_folder(L, 1), .time.signal = interrupt_signal()};
    lua_Integer limit = luaL_checkinteger(L, 2);
    luaL_argcheck(L, limit >= 0, 2, "must not be negative");
    listing.limit = (size_t)limit;
    listing.time.until = check_until(L, 3);
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
    return 2;
}
