// SPDX-License-Identifier: Apache-2.0
// Walks a directory, see workspace_tree.h.
#include "core/files/workspace_tree.h"

#include "core/base/buffer.h"
#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/files/directory_names.h"
#include "core/files/own_files.h"
#include "core/files/workspace_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    DIRECTORIES_OPEN = 32, // descriptors kept open; the directories above are opened again on the way back
    ENTRIES_BETWEEN_CHECKS = 512,
    DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
};

// A directory that was entered: its names in order, and how far the walk has come.
struct level {
    int fd; // -1: closed to save descriptors
    struct stat status;
    bool has_own_files; // of the runner
    struct directory_names names;
    size_t next;      // of the names
    size_t path_size; // of the part before each name in the path
};

struct workspace_tree {
    const struct workspace *workspace;
    struct workspace_tree_options options;
    char *start; // relative path where it starts
    bool begun, cut;
    int start_fd;         // of what the walk starts with
    struct level *levels; // the deepest last; buffers are kept for the next directory at that depth
    size_t depth, capacity;
    size_t met; // entries since the start
    struct buffer path;
};

static struct level *deepest(const struct workspace_tree *tree)
{
    return &tree->levels[tree->depth - 1];
}

static const char *current_name(const struct level *level)
{
    return level->names.items[level->next - 1].name;
}

// Reads the names of an open directory into the level: 0, or -1 and errno (EINTR: the interrupt).
static int list(struct workspace_tree *tree, struct level *level)
{
    level->next = 0;
    if (fstat(level->fd, &level->status) < 0)
        return -1;
    level->has_own_files = own_files_in(&level->status);
    int more = directory_names_read(&level->names, level->fd, tree->options.hidden, tree->options.max_names);
    tree->cut = tree->cut || more > 0;
    return more < 0 ? -1 : 0;
}

static void close_level(struct level *level)
{
    if (level->fd >= 0)
        close(level->fd);
    level->fd = -1;
}

// Makes room for one more level.
static int grow(struct workspace_tree *tree)
{
    if (tree->depth < tree->capacity)
        return 0;
    size_t capacity = tree->capacity ? tree->capacity * 2 : 16;
    struct level *levels = realloc(tree->levels, capacity * sizeof *levels);
    if (!levels)
        return -1;
    memset(levels + tree->capacity, 0, (capacity - tree->capacity) * sizeof *levels);
    tree->levels = levels;
    tree->capacity = capacity;
    return 0;
}

// Enters an open directory, which it owns: 1; 0: it cannot be read; -1 and errno EINTR or ENOMEM.
static int enter(struct workspace_tree *tree, int fd)
{
    if (grow(tree) < 0) {
        close(fd);
        errno = ENOMEM;
        return -1;
    }
    struct level *level = &tree->levels[tree->depth];
    level->fd = fd;
    level->path_size = tree->path.size;
    if (list(tree, level) < 0) {
        int saved = errno;
        close_level(level);
        errno = saved;
        return errno == ENOMEM || errno == EINTR ? -1 : 0;
    }
    tree->depth++;
    // The first one stays open: the others are opened again from there.
    if (tree->depth > DIRECTORIES_OPEN + 1)
        close_level(&tree->levels[tree->depth - DIRECTORIES_OPEN - 1]);
    return 1;
}

static int open_level(const struct workspace_tree *tree, size_t index, int parent)
{
    struct stat status;
    const struct level *level = &tree->levels[index];
    cleanup_fd int fd = openat(parent, current_name(level - 1), DIRECTORY_FLAGS);
    if (fd < 0 || fstat(fd, &status) < 0 || status.st_dev != level->status.st_dev ||
        status.st_ino != level->status.st_ino)
        return -1;
    return steal_fd(&fd);
}

// Opens the deepest level again if it was closed, and those above it that are kept open. -1: another directory has
// taken its place.
static int reopen(struct workspace_tree *tree)
{
    if (deepest(tree)->fd >= 0)
        return 0;
    size_t keep_from = tree->depth > DIRECTORIES_OPEN ? tree->depth - DIRECTORIES_OPEN : 1;
    int parent = tree->levels[0].fd;
    for (size_t i = 1; i < tree->depth; i++) {
        int fd = open_level(tree, i, parent);
        if (i > 1 && i - 1 < keep_from)
            close(parent);
        if (fd < 0)
            return -1;
        if (i >= keep_from) {
            close_level(&tree->levels[i]);
            tree->levels[i].fd = fd;
        }
        parent = fd;
    }
    return 0;
}

static int set_path(struct workspace_tree *tree, size_t size, const char *name)
{
    tree->path.size = size;
    if (size && buffer_append(&tree->path, "/", 1) < 0)
        return -1;
    if (buffer_append(&tree->path, name, strlen(name) + 1) < 0)
        return -1;
    tree->path.size--;
    return 0;
}

static int tree_fail(struct error *error, int number)
{
    if (number == EINTR && interrupt_check(error) < 0)
        return -1;
    return error_system(error, number, "cannot list the directory");
}

// The start: 1 and the entry, or -1.
static int begin(struct workspace_tree *tree, struct workspace_tree_entry *entry, struct error *error)
{
    struct stat status;
    const char *slash = strrchr(tree->start, '/');
    tree->begun = true;
    if (fstat(tree->start_fd, &status) < 0)
        return workspace_fail(error, errno, "look at", tree->start);
    if (S_ISREG(status.st_mode) && own_files_refuse_file(&status, tree->start, error))
        return -1;
    *entry = (struct workspace_tree_entry){
        .name = slash ? slash + 1 : tree->start, .mode = status.st_mode, .size = (uint64_t)status.st_size};
    if (!S_ISDIR(status.st_mode) || tree->options.max_depth == 0)
        return 1;
    int fd = openat(tree->start_fd, ".", DIRECTORY_FLAGS);
    if (fd < 0)
        return workspace_fail(error, errno, "list the directory", tree->start);
    int entered = enter(tree, fd);
    if (entered < 0)
        return tree_fail(error, errno);
    entry->entered = entered;
    return 1;
}

// The status of an item, as far as the options ask for it: 0, or -1 and errno ENOENT: it is gone.
static int look(const struct workspace_tree *tree, const struct level *level, const struct directory_name *item,
                struct stat *status)
{
    *status = (struct stat){.st_mode = DTTOIF(item->type)};
    if (tree->options.types_only && item->type != DT_UNKNOWN)
        return 0;
    if (fstatat(level->fd, item->name, status, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    *status = (struct stat){.st_mode = DTTOIF(item->type)};
    return errno == ENOENT ? -1 : 0;
}

// Fills the entry with the next item of the deepest level: 1; 0: it is skipped; -1 and errno.
static int meet(struct workspace_tree *tree, struct workspace_tree_entry *entry)
{
    struct stat status;
    struct level *level = deepest(tree);
    const struct directory_name *item = &level->names.items[level->next++];
    if (level->has_own_files && own_files_named(&level->status, item->name))
        return 0;
    if (look(tree, level, item, &status) < 0)
        return 0;
    *entry = (struct workspace_tree_entry){.name = item->name,
                                           .depth = tree->depth,
                                           .mode = status.st_mode,
                                           .size = (uint64_t)status.st_size,
                                           .inode = status.st_ino,
                                           .modified = status.st_mtim,
                                           .changed = status.st_ctim};
    if (set_path(tree, level->path_size, item->name) < 0) {
        errno = ENOMEM;
        return -1;
    }
    if (!S_ISDIR(status.st_mode) || tree->depth >= tree->options.max_depth)
        return 1;
    int fd = openat(level->fd, item->name, DIRECTORY_FLAGS);
    if (fd < 0 && errno == ENOENT)
        return 0;
    int entered = fd < 0 ? 0 : enter(tree, fd);
    entry->entered = entered > 0;
    return entered < 0 ? -1 : 1;
}

int workspace_tree_next(struct workspace_tree *tree, struct workspace_tree_entry *entry, struct error *error)
{
    if (!tree->begun)
        return begin(tree, entry, error);
    while (tree->depth > 0) {
        struct level *level = deepest(tree);
        if (level->next == level->names.count || reopen(tree) < 0) {
            close_level(level);
            tree->depth--;
            continue;
        }
        if (++tree->met % ENTRIES_BETWEEN_CHECKS == 0 && interrupt_check(error) < 0)
            return -1;
        int met = meet(tree, entry);
        if (met != 0)
            return met < 0 ? tree_fail(error, errno) : 1;
    }
    return 0;
}

bool workspace_tree_is_cut(const struct workspace_tree *tree)
{
    return tree->cut;
}

void workspace_tree_skip(struct workspace_tree *tree, const struct workspace_tree_entry *entry)
{
    if (entry->entered) {
        close_level(deepest(tree));
        tree->depth--;
    }
}

struct workspace_tree *workspace_tree_open(const struct workspace *workspace, const char *path,
                                           const struct workspace_tree_options *options, struct error *error)
{
    cleanup_free char *relative = workspace_relative(workspace, path, error);
    if (!relative)
        return NULL;
    cleanup_fd int fd = workspace_resolve(workspace, relative, O_PATH);
    if (fd < 0) {
        workspace_fail(error, errno, "look at", path);
        return NULL;
    }
    size_t length = strlen(relative);
    if (relative[length - 1] == '/')
        relative[length - 1] = '\0';
    struct workspace_tree *tree = calloc(1, sizeof *tree);
    bool whole = strcmp(relative, ".") == 0;
    if (!tree || (!whole && buffer_append(&tree->path, relative, strlen(relative) + 1) < 0)) {
        free(tree);
        error_system(error, ENOMEM, "cannot look at %s", path);
        return NULL;
    }
    tree->path.size = whole ? 0 : strlen(relative);
    tree->workspace = workspace;
    tree->options = *options;
    tree->start = steal_pointer(&relative);
    tree->start_fd = steal_fd(&fd);
    return tree;
}

void workspace_tree_close(struct workspace_tree *tree)
{
    if (!tree)
        return;
    for (size_t i = 0; i < tree->capacity; i++) {
        if (i < tree->depth)
            close_level(&tree->levels[i]);
        directory_names_free(&tree->levels[i].names);
    }
    close(tree->start_fd);
    free(tree->levels);
    free(tree->start);
    buffer_free(&tree->path);
    free(tree);
}

const char *workspace_tree_path(const struct workspace_tree *tree)
{
    return tree->path.size ? tree->path.data : ".";
}

char *workspace_tree_target(const struct workspace_tree *tree)
{
    return tree->depth ? workspace_read_link(deepest(tree)->fd, current_name(deepest(tree))) : NULL;
}

int workspace_tree_open_file(const struct workspace_tree *tree, struct stat *status)
{
    enum { FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };
    cleanup_fd int fd = tree->depth ? openat(deepest(tree)->fd, current_name(deepest(tree)), FLAGS)
                                    : workspace_resolve(tree->workspace, tree->start, FLAGS & ~O_NOFOLLOW);
    if (fd < 0 || fstat(fd, status) < 0)
        return -1;
    if (!S_ISREG(status->st_mode)) {
        errno = EINVAL;
        return -1;
    }
    return steal_fd(&fd);
}

bool workspace_tree_remove_temporary(const struct workspace_tree *tree, int64_t since)
{
    struct stat status;
    const struct level *level = tree->depth ? deepest(tree) : NULL;
    if (!level || !workspace_is_temporary_name(current_name(level)) ||
        fstatat(level->fd, current_name(level), &status, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    bool ours = (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode)) && status.st_nlink == 1 &&
                status.st_uid == geteuid() && status.st_ctim.tv_sec >= since;
    return ours && unlinkat(level->fd, current_name(level), 0) == 0;
}
