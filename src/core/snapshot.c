// SPDX-License-Identifier: Apache-2.0
// Keeps what a workspace was and compares, see snapshot.h.
#include "core/snapshot.h"

#include "core/cleanup.h"
#include "core/file.h"
#include "core/ignore.h"
#include "core/workspace_read.h"
#include "core/workspace_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LARGEST_IGNORE_FILE = 1 << 20, DEEPEST = 1000, BLOCK = 128 << 10 };

#define NOT_KEPT UINT64_MAX

struct item {
    size_t path; // offset in paths
    mode_t mode;
    uint64_t size, inode;
    int64_t modified, changed; // ns
    uint64_t content;          // offset in the store, or NOT_KEPT
};

struct snapshot {
    const struct workspace *workspace;
    uint64_t most_bytes;
    char *left_out; // owned
    struct ignore ignore;
    struct buffer paths; // NUL-terminated
    struct item *items;  // in the order of the walk
    size_t count;
    int store;
    struct buffer pending; // what is not yet written there
    uint64_t stored;       // bytes, with the pending ones
    struct snapshot_change *changes;
    size_t change_count;
};

static int out_of_memory(struct error *error)
{
    return error_set(error, "out_of_memory", 0, "out of memory for the state of the workspace");
}

static const char *path_of(const struct snapshot *snapshot, const struct item *item)
{
    return snapshot->paths.data + item->path;
}

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static struct item item_of(const struct tree_entry *entry)
{
    return (struct item){.mode = entry->mode,
                         .size = entry->size,
                         .inode = entry->inode,
                         .modified = nanoseconds(entry->modified),
                         .changed = nanoseconds(entry->changed),
                         .content = NOT_KEPT};
}

static int read_ignore_file(struct snapshot *snapshot, const char *directory)
{
    cleanup_free char *path = NULL;
    cleanup_buffer struct buffer text = {0};
    struct read_result result;
    struct error error = {0};
    const struct read_options options = {.max_bytes = LARGEST_IGNORE_FILE};
    if (asprintf(&path, "%s%s.gitignore", directory, *directory ? "/" : "") < 0)
        return -1;
    bool there = workspace_read(snapshot->workspace, path, &options, &text, &result, &error) == 0;
    error_clear(&error);
    return there ? ignore_add(&snapshot->ignore, directory, text.data, text.size) : 0;
}

static bool is_left_out(const struct snapshot *snapshot, const struct tree_entry *entry, const char *path)
{
    return strcmp(entry->name, ".git") == 0 || (snapshot->left_out && strcmp(path, snapshot->left_out) == 0) ||
           ignore_matches(&snapshot->ignore, path, S_ISDIR(entry->mode));
}

// The next file or link of the walk that is not left out: 1, 0 at the end, -1. reads: also reads .gitignore files.
static int next_item(struct snapshot *snapshot, struct tree *tree, bool reads, struct tree_entry *entry,
                     struct error *error)
{
    int more;
    while ((more = tree_next(tree, entry, error)) > 0) {
        const char *path = entry->depth ? tree_path(tree) : "";
        if (entry->depth && is_left_out(snapshot, entry, path))
            tree_skip(tree, entry);
        else if (S_ISDIR(entry->mode) && reads && read_ignore_file(snapshot, path) < 0)
            return out_of_memory(error);
        else if (S_ISREG(entry->mode) || S_ISLNK(entry->mode))
            return 1;
    }
    return more;
}

static int write_pending(struct snapshot *snapshot, struct error *error)
{
    struct iovec part = {.iov_base = snapshot->pending.data, .iov_len = snapshot->pending.size};
    snapshot->pending.size = 0;
    return part.iov_len ? file_write_parts(snapshot->store, &part, 1, error) : 0;
}

// Makes room for more content at the end of what is pending. NULL: *error is filled.
static char *room(struct snapshot *snapshot, size_t size, struct error *error)
{
    if (snapshot->pending.size >= BLOCK && write_pending(snapshot, error) < 0)
        return NULL;
    if (buffer_reserve(&snapshot->pending, size) < 0) {
        out_of_memory(error);
        return NULL;
    }
    return snapshot->pending.data + snapshot->pending.size;
}

static void stored(struct snapshot *snapshot, size_t size)
{
    snapshot->pending.size += size;
    snapshot->stored += size;
}

static int store_link(struct snapshot *snapshot, const struct tree *tree, struct item *item, struct error *error)
{
    cleanup_free char *target = tree_target(tree);
    item->size = target ? strlen(target) : 0;
    item->content = snapshot->stored;
    char *to = room(snapshot, item->size, error);
    if (!to)
        return -1;
    if (target)
        memcpy(to, target, item->size);
    stored(snapshot, item->size);
    return 0;
}

// A file that is shorter than its status said, or cannot be read, is not kept. Of one that has grown, the first part
// is.
static int store_file(struct snapshot *snapshot, const struct tree *tree, struct item *item, struct error *error)
{
    struct stat status;
    uint64_t begun = snapshot->stored, left = item->size;
    if (left > snapshot->most_bytes - begun)
        return 0;
    cleanup_fd int fd = left ? tree_open_file(tree, &status) : -1;
    while (fd >= 0 && left > 0) {
        size_t wanted = left < BLOCK ? left : BLOCK;
        char *to = room(snapshot, wanted, error);
        ssize_t size = to ? read(fd, to, wanted) : 0;
        if (!to)
            return -1;
        if (size <= 0)
            break;
        stored(snapshot, (size_t)size);
        left -= (uint64_t)size;
    }
    if (left == 0)
        item->content = begun;
    return 0;
}

static int add_item(struct snapshot *snapshot, const struct tree *tree, const struct tree_entry *entry,
                    struct error *error)
{
    struct item item = item_of(entry), *items = array_grow(snapshot->items, snapshot->count, sizeof item);
    if (!items)
        return out_of_memory(error);
    snapshot->items = items;
    item.path = snapshot->paths.size;
    if (buffer_append(&snapshot->paths, tree_path(tree), strlen(tree_path(tree)) + 1) < 0)
        return out_of_memory(error);
    int stored =
        S_ISLNK(item.mode) ? store_link(snapshot, tree, &item, error) : store_file(snapshot, tree, &item, error);
    snapshot->items[snapshot->count++] = item;
    return stored;
}

// Compares paths in the order of a walk: names in byte order, a directory before its entries.
static int compare_paths(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    int left = *a == '/' ? 1 : (unsigned char)*a + (*a != '\0'),
        right = *b == '/' ? 1 : (unsigned char)*b + (*b != '\0');
    return left - right;
}

static struct tree *open_tree(const struct workspace *workspace, struct error *error)
{
    const struct tree_options options = {.max_depth = DEEPEST, .hidden = true};
    return tree_open(workspace, ".", &options, error);
}

static int fill(struct snapshot *snapshot, struct tree *tree, struct error *error)
{
    struct tree_entry entry;
    int more;
    while ((more = next_item(snapshot, tree, true, &entry, error)) > 0)
        if (add_item(snapshot, tree, &entry, error) < 0)
            return -1;
    if (more == 0 && write_pending(snapshot, error) < 0)
        return -1;
    buffer_free(&snapshot->pending);
    return more;
}

static int open_store(const char *directory, struct error *error)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    cleanup_free char *name = NULL;
    if (asprintf(&name, "%s/.sba-XXXXXX", directory) < 0)
        return out_of_memory(error);
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return error_system(error, errno, "cannot create a file in %s", directory);
    unlink(name);
    return fd;
}

// 0, or -1: the caller frees the snapshot.
static int begin(struct snapshot *snapshot, const struct workspace *workspace, const struct snapshot_options *options,
                 struct error *error)
{
    snapshot->workspace = workspace;
    snapshot->most_bytes = options->most_bytes;
    snapshot->store = open_store(options->directory, error);
    if (snapshot->store < 0)
        return -1;
    snapshot->left_out = options->left_out ? strdup(options->left_out) : NULL;
    if (options->left_out && !snapshot->left_out)
        return out_of_memory(error);
    struct tree *tree = open_tree(workspace, error);
    int outcome = tree ? fill(snapshot, tree, error) : -1;
    tree_close(tree);
    return outcome;
}

struct snapshot *snapshot_take(const struct workspace *workspace, const struct snapshot_options *options,
                               struct error *error)
{
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot) {
        out_of_memory(error);
        return NULL;
    }
    if (begin(snapshot, workspace, options, error) == 0)
        return snapshot;
    snapshot_free(snapshot);
    return NULL;
}

void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    cleanup_close(&snapshot->store);
    ignore_free(&snapshot->ignore);
    buffer_free(&snapshot->paths);
    buffer_free(&snapshot->pending);
    free(snapshot->left_out);
    free(snapshot->items);
    for (size_t i = 0; i < snapshot->change_count; i++)
        free(snapshot->changes[i].path);
    free(snapshot->changes);
    free(snapshot);
}

// Appends the kept content of an item.
static int read_stored(const struct snapshot *snapshot, const struct item *item, struct buffer *content,
                       struct error *error)
{
    if (buffer_reserve(content, item->size) < 0)
        return out_of_memory(error);
    for (size_t have = 0; have < item->size;) {
        ssize_t size =
            pread(snapshot->store, content->data + content->size, item->size - have, (off_t)(item->content + have));
        if (size <= 0)
            return error_system(error, size < 0 ? errno : EIO, "cannot read what %s was", path_of(snapshot, item));
        have += (size_t)size;
        content->size += (size_t)size;
    }
    return 0;
}

int snapshot_content(const struct snapshot *snapshot, size_t original, struct buffer *content, struct error *error)
{
    if (original < 1 || original > snapshot->count || snapshot->items[original - 1].content == NOT_KEPT)
        return error_set(error, "not_found", 0, "the content was not kept");
    return read_stored(snapshot, &snapshot->items[original - 1], content, error);
}

static int same_as_stored(const struct snapshot *snapshot, const struct item *item, int fd)
{
    char now[4096], then[sizeof now];
    for (uint64_t at = 0; at < item->size;) {
        ssize_t size = read(fd, now, sizeof now);
        if (size <= 0 || pread(snapshot->store, then, (size_t)size, (off_t)(item->content + at)) != size ||
            memcmp(now, then, (size_t)size) != 0)
            return false;
        at += (uint64_t)size;
    }
    return true;
}

// Whether the content is the same, though times or inode differ.
static bool same_content(const struct snapshot *snapshot, const struct tree *tree, const struct item *before,
                         const struct item *after)
{
    if (before->content == NOT_KEPT)
        return false;
    if (S_ISLNK(after->mode)) {
        cleanup_free char *target = tree_target(tree);
        cleanup_buffer struct buffer old = {0};
        struct error error = {0};
        bool read = read_stored(snapshot, before, &old, &error) == 0;
        error_clear(&error);
        return read && target && strlen(target) == old.size && memcmp(target, old.data ? old.data : "", old.size) == 0;
    }
    struct stat status;
    cleanup_fd int fd = before->size == after->size ? tree_open_file(tree, &status) : -1;
    return fd >= 0 && same_as_stored(snapshot, before, fd);
}

static int add_change(struct snapshot *snapshot, const char *path, enum snapshot_action action,
                      const struct item *before, const struct item *after, struct error *error)
{
    struct snapshot_change *changes = array_grow(snapshot->changes, snapshot->change_count, sizeof *changes);
    if (!changes)
        return out_of_memory(error);
    snapshot->changes = changes;
    char *copy = strdup(path);
    if (!copy)
        return out_of_memory(error);
    struct snapshot_change *change = &changes[snapshot->change_count++];
    *change = (struct snapshot_change){.path = copy, .action = action};
    if (before && before->content != NOT_KEPT)
        change->original = (size_t)(before - snapshot->items) + 1;
    if (before)
        change->before = (struct snapshot_side){before->mode, before->size};
    if (after)
        change->after = (struct snapshot_side){after->mode, after->size};
    return 0;
}

static bool is_untouched(const struct item *before, const struct item *after)
{
    return before->mode == after->mode && before->size == after->size && before->inode == after->inode &&
           before->modified == after->modified && before->changed == after->changed;
}

static int compare_item(struct snapshot *snapshot, const struct tree *tree, const struct item *before,
                        const struct item *after, struct error *error)
{
    const char *path = tree_path(tree);
    if (is_untouched(before, after))
        return 0;
    if ((before->mode & S_IFMT) != (after->mode & S_IFMT))
        return add_change(snapshot, path, SNAPSHOT_TYPE_CHANGED, before, after, error);
    if (!same_content(snapshot, tree, before, after))
        return add_change(snapshot, path, SNAPSHOT_MODIFIED, before, after, error);
    if (before->mode != after->mode && !S_ISLNK(after->mode))
        return add_change(snapshot, path, SNAPSHOT_MODE_CHANGED, before, after, error);
    return 0;
}

// Adds as deleted everything from *at on that comes before the path (NULL: everything).
static int add_deleted(struct snapshot *snapshot, size_t *at, const char *path, struct error *error)
{
    for (; *at < snapshot->count; ++*at) {
        const struct item *item = &snapshot->items[*at];
        if (path && compare_paths(path_of(snapshot, item), path) >= 0)
            return 0;
        if (add_change(snapshot, path_of(snapshot, item), SNAPSHOT_DELETED, item, NULL, error) < 0)
            return -1;
    }
    return 0;
}

// Goes through both walks side by side, because they have the same order.
static int find_changes(struct snapshot *snapshot, struct tree *tree, struct error *error)
{
    struct tree_entry entry;
    size_t at = 0;
    int more;
    while ((more = next_item(snapshot, tree, false, &entry, error)) > 0) {
        const char *path = tree_path(tree);
        const struct item after = item_of(&entry);
        if (add_deleted(snapshot, &at, path, error) < 0)
            return -1;
        const struct item *before = at < snapshot->count ? &snapshot->items[at] : NULL;
        bool was_there = before && strcmp(path_of(snapshot, before), path) == 0;
        at += was_there;
        if ((was_there ? compare_item(snapshot, tree, before, &after, error)
                       : add_change(snapshot, path, SNAPSHOT_CREATED, NULL, &after, error)) < 0)
            return -1;
    }
    return more < 0 ? -1 : add_deleted(snapshot, &at, NULL, error);
}

long snapshot_compare(struct snapshot *snapshot, const struct snapshot_change **changes, struct error *error)
{
    struct tree *tree = open_tree(snapshot->workspace, error);
    if (!tree)
        return -1;
    int outcome = find_changes(snapshot, tree, error);
    tree_close(tree);
    if (outcome < 0)
        return -1;
    *changes = snapshot->changes;
    return (long)snapshot->change_count;
}
