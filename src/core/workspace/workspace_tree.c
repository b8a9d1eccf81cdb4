// SPDX-License-Identifier: Apache-2.0
// Walks a directory, see workspace_tree.h.
#include "core/workspace/workspace_tree.h"

#include "core/base/buffer.h"
#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/workspace/own_files.h"
#include "core/workspace/workspace_directory.h"
#include "core/workspace/workspace_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    ENTRIES_BETWEEN_CHECKS = 512,
    DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
};

// A directory that was entered: what it holds, in order, and how far the walk has come.
struct level {
    struct buffer names; // each behind a byte for its type, DT_*, and with a NUL
    const char **items;  // into names, sorted
    size_t count, next;
    size_t path_size; // of the part before each name in the path
};

struct workspace_tree {
    struct workspace start; // what the walk starts with; its path is relative to the workspace
    struct workspace_tree_options options;
    bool begun, cut;
    int directory;        // the deepest level's; -1: to be opened again, as after each level below it
    struct level *levels; // the deepest last
    size_t depth;
    size_t met; // entries since the start
    struct buffer path;
};

static struct level *deepest(const struct workspace_tree *tree)
{
    return &tree->levels[tree->depth - 1];
}

static const char *current_name(const struct workspace_tree *tree)
{
    return deepest(tree)->items[deepest(tree)->next - 1] + 1;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a + 1, *(const char *const *)b + 1);
}

static bool is_wanted(const struct workspace_tree *tree, const char *name)
{
    if (*name != '.')
        return true;
    return tree->options.hidden && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int sort_items(struct level *level)
{
    const char *item = level->names.data;
    level->items = calloc(level->count + 1, sizeof *level->items);
    if (!level->items)
        return -1;
    for (size_t i = 0; i < level->count; i++, item += strlen(item + 1) + 2)
        level->items[i] = item;
    qsort(level->items, level->count, sizeof *level->items, compare_items);
    return 0;
}

// Adds what one getdents64 gave: 1 to go on; 0: there are enough; -1: out of memory.
static int add_items(struct workspace_tree *tree, struct level *level, const char *read, long size)
{
    for (long at = 0; at < size;) {
        const struct dirent *entry = (const void *)(read + at);
        at += entry->d_reclen;
        if (!is_wanted(tree, entry->d_name) || own_files_named(tree->directory, entry->d_name))
            continue;
        if (tree->options.max_names && level->count == tree->options.max_names) {
            tree->cut = true;
            return 0;
        }
        if (buffer_append(&level->names, &entry->d_type, 1) < 0 ||
            buffer_append(&level->names, entry->d_name, strlen(entry->d_name) + 1) < 0)
            return -1;
        level->count++;
    }
    return 1;
}

// Reads the open directory into the level: 0, or -1 and errno (EINTR: the interrupt).
static int read_items(struct workspace_tree *tree, struct level *level)
{
    static char read[64 * 1024] __attribute__((aligned(8)));
    long size;
    int more = 1;
    while (more > 0 && (size = syscall(SYS_getdents64, tree->directory, read, sizeof read)) != 0) {
        if (size < 0 || interrupt_reason() != INTERRUPT_NONE)
            return errno = size < 0 ? errno : EINTR, -1;
        more = add_items(tree, level, read, size);
    }
    if (more >= 0 && sort_items(level) == 0)
        return 0;
    return errno = ENOMEM, -1;
}

static void leave(struct workspace_tree *tree)
{
    buffer_free(&deepest(tree)->names);
    free(deepest(tree)->items);
    tree->depth--;
    cleanup_close(&tree->directory);
}

// Enters an open directory, which it owns: 1; 0: it cannot be read; -1 and errno EINTR or ENOMEM.
static int enter(struct workspace_tree *tree, int fd)
{
    struct level *levels = array_grow(tree->levels, tree->depth, sizeof *levels);
    if (!levels) {
        close(fd);
        return errno = ENOMEM, -1;
    }
    tree->levels = levels;
    levels[tree->depth++] = (struct level){.path_size = tree->path.size};
    cleanup_close(&tree->directory);
    tree->directory = fd;
    if (read_items(tree, deepest(tree)) == 0)
        return 1;
    int saved = errno;
    leave(tree);
    errno = saved;
    return errno == ENOMEM || errno == EINTR ? -1 : 0;
}

// Opens a directory below the start by a path that may be longer than the kernel takes at once.
static int open_below(const struct workspace *start, const char *path)
{
    struct workspace from = *start;
    cleanup_fd int opened = -1;
    while (strlen(path) >= PATH_MAX) {
        const char *slash = memrchr(path, '/', PATH_MAX - 1);
        cleanup_free char *first = slash ? strndup(path, (size_t)(slash - path)) : NULL;
        from.fd = first ? workspace_resolve(&from, first, O_PATH | O_DIRECTORY | O_NOFOLLOW) : -1;
        if (from.fd < 0)
            return -1;
        cleanup_close(&opened);
        opened = from.fd;
        path = slash + 1;
    }
    return workspace_resolve(&from, path, DIRECTORY_FLAGS);
}

// Opens the directory of the deepest level again: 1; 0: another has taken its place; -1 and errno.
static int open_again(struct workspace_tree *tree)
{
    if (tree->directory >= 0)
        return 1;
    size_t skipped = tree->levels[0].path_size, size = deepest(tree)->path_size;
    tree->path.data[size] = '\0';
    const char *below = tree->path.data + skipped + (skipped && size > skipped);
    tree->directory = open_below(&tree->start, size > skipped ? below : ".");
    if (tree->directory >= 0)
        return 1;
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV || errno == EACCES ? 0 : -1;
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

static struct workspace_tree_entry entry_of(const char *name, size_t depth, const struct stat *status)
{
    return (struct workspace_tree_entry){.name = name,
                                         .depth = depth,
                                         .mode = status->st_mode,
                                         .size = (uint64_t)status->st_size,
                                         .inode = status->st_ino,
                                         .modified = status->st_mtim,
                                         .changed = status->st_ctim};
}

// The start: 1 and the entry, or -1.
static int begin(struct workspace_tree *tree, struct workspace_tree_entry *entry, struct error *error)
{
    struct stat status;
    const char *path = tree->start.path, *slash = strrchr(path, '/');
    tree->begun = true;
    if (fstat(tree->start.fd, &status) < 0)
        return workspace_fail(error, errno, "look at", path);
    if (S_ISREG(status.st_mode) && own_files_refuse_file(&status, path, error))
        return -1;
    *entry = entry_of(slash ? slash + 1 : path, 0, &status);
    if (!S_ISDIR(status.st_mode) || tree->options.max_depth == 0)
        return 1;
    int fd = openat(tree->start.fd, ".", DIRECTORY_FLAGS);
    if (fd < 0)
        return workspace_fail(error, errno, "list the directory", path);
    int entered = enter(tree, fd);
    entry->entered = entered > 0;
    return entered < 0 ? tree_fail(error, errno) : 1;
}

// Fills the entry with the next item of the deepest level: 1; 0: it is gone; -1 and errno.
static int visit(struct workspace_tree *tree, struct workspace_tree_entry *entry)
{
    struct level *level = deepest(tree);
    const char *item = level->items[level->next++], *name = item + 1;
    struct stat status;
    if (fstatat(tree->directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT)
            return 0;
        status = (struct stat){.st_mode = DTTOIF((unsigned char)*item)};
    }
    *entry = entry_of(name, tree->depth, &status);
    if (set_path(tree, level->path_size, name) < 0)
        return errno = ENOMEM, -1;
    if (!S_ISDIR(status.st_mode) || tree->depth >= tree->options.max_depth)
        return 1;
    int fd = openat(tree->directory, name, DIRECTORY_FLAGS);
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
        int is_open = deepest(tree)->next < deepest(tree)->count ? open_again(tree) : 0;
        if (is_open == 0) {
            leave(tree);
            continue;
        }
        if (++tree->met % ENTRIES_BETWEEN_CHECKS == 0 && interrupt_check(error) < 0)
            return -1;
        int outcome = is_open < 0 ? -1 : visit(tree, entry);
        if (outcome != 0)
            return outcome < 0 ? tree_fail(error, errno) : 1;
    }
    return 0;
}

bool workspace_tree_is_cut(const struct workspace_tree *tree)
{
    return tree->cut;
}

void workspace_tree_skip(struct workspace_tree *tree, const struct workspace_tree_entry *entry)
{
    if (entry->entered)
        leave(tree);
}

struct workspace_tree *workspace_tree_open(const struct workspace *workspace, const char *path,
                                           const struct workspace_tree_options *options, struct error *error)
{
    cleanup_free char *relative = workspace_relative(workspace, path, error);
    if (!relative)
        return NULL;
    cleanup_fd int fd = workspace_resolve(workspace, relative, O_PATH);
    if (fd < 0)
        return workspace_fail(error, errno, "look at", path), NULL;
    size_t length = strlen(relative);
    if (relative[length - 1] == '/')
        relative[--length] = '\0';
    struct workspace_tree *tree = calloc(1, sizeof *tree);
    if (!tree || buffer_append(&tree->path, relative, length + 1) < 0) {
        free(tree);
        error_memory(error, "cannot look at %s", path);
        return NULL;
    }
    tree->path.size = strcmp(relative, ".") == 0 ? 0 : length;
    tree->options = *options;
    tree->directory = -1;
    tree->start = (struct workspace){.fd = steal_fd(&fd), .path = steal_pointer(&relative)};
    return tree;
}

void workspace_tree_close(struct workspace_tree *tree)
{
    if (!tree)
        return;
    while (tree->depth)
        leave(tree);
    workspace_close(&tree->start);
    free(tree->levels);
    buffer_free(&tree->path);
    free(tree);
}

const char *workspace_tree_path(const struct workspace_tree *tree)
{
    return tree->path.size ? tree->path.data : ".";
}

char *workspace_tree_target(const struct workspace_tree *tree)
{
    return tree->depth ? workspace_read_link(tree->directory, current_name(tree)) : NULL;
}

int workspace_tree_open_file(const struct workspace_tree *tree, struct stat *status)
{
    enum { FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };
    cleanup_fd int fd = openat(tree->directory, current_name(tree), FLAGS);
    if (fd < 0 || fstat(fd, status) < 0)
        return -1;
    if (!S_ISREG(status->st_mode))
        return errno = EINVAL, -1;
    return steal_fd(&fd);
}

bool workspace_tree_remove_temporary(const struct workspace_tree *tree, const char *first)
{
    struct stat status;
    if (!tree->depth || !deepest(tree)->next || !workspace_is_temporary_name(current_name(tree), first) ||
        fstatat(tree->directory, current_name(tree), &status, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    bool ours =
        (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode)) && status.st_nlink == 1 && status.st_uid == geteuid();
    return ours && unlinkat(tree->directory, current_name(tree), 0) == 0;
}
