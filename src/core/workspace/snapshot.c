// SPDX-License-Identifier: Apache-2.0
// Keeps what a workspace was, see snapshot.h. snapshot_compare.c compares.
#include "core/base/cleanup.h"
#include "core/workspace/snapshot_internal.h"
#include "core/workspace/workspace_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST_IGNORE_FILE = 1 << 20, DEEPEST = 1000 };

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

struct snapshot_item snapshot_item_of(const struct workspace_tree_entry *entry)
{
    return (struct snapshot_item){.mode = entry->mode,
                                  .size = entry->size,
                                  .inode = entry->inode,
                                  .modified = nanoseconds(entry->modified),
                                  .changed = nanoseconds(entry->changed),
                                  .content = SNAPSHOT_NOT_KEPT};
}

static int read_ignore_file(struct snapshot *snapshot, const char *directory)
{
    cleanup_free char *path = NULL;
    cleanup_buffer struct buffer text = {0};
    struct workspace_read_result result;
    const struct workspace_read_options options = {.max_bytes = LARGEST_IGNORE_FILE,
                                                   .max_content = LARGEST_IGNORE_FILE};
    if (asprintf(&path, "%s%s.gitignore", directory, *directory ? "/" : "") < 0)
        return -1;
    bool there = workspace_read(snapshot->workspace, path, &options, &text, &result, NULL) == 0;
    return there ? ignore_add(&snapshot->ignore, directory, text.data, text.size) : 0;
}

static bool is_left_out(const struct snapshot *snapshot, const struct workspace_tree_entry *entry, const char *path)
{
    return strcmp(entry->name, ".git") == 0 || (snapshot->left_out && strcmp(path, snapshot->left_out) == 0) ||
           ignore_matches(&snapshot->ignore, path, S_ISDIR(entry->mode));
}

// An entry without an inode could not be looked at, because its directory cannot be searched.
static enum snapshot_kind entry_kind(const struct snapshot *snapshot, const struct workspace_tree_entry *entry,
                                     const char *path)
{
    if (entry->depth && is_left_out(snapshot, entry, path))
        return SNAPSHOT_LEFT_OUT;
    if (S_ISDIR(entry->mode))
        return entry->entered ? SNAPSHOT_DIRECTORY : SNAPSHOT_CLOSED;
    if (!S_ISREG(entry->mode) && !S_ISLNK(entry->mode))
        return SNAPSHOT_LEFT_OUT;
    return entry->inode ? SNAPSHOT_FILE_OR_LINK : SNAPSHOT_CLOSED;
}

int snapshot_next(struct snapshot *snapshot, struct workspace_tree *tree, bool reads,
                  struct workspace_tree_entry *entry, enum snapshot_kind *kind, struct error *error)
{
    int more;
    while ((more = workspace_tree_next(tree, entry, error)) > 0) {
        const char *path = entry->depth ? workspace_tree_path(tree) : "";
        *kind = entry_kind(snapshot, entry, path);
        if (*kind == SNAPSHOT_LEFT_OUT)
            workspace_tree_skip(tree, entry);
        if (*kind == SNAPSHOT_DIRECTORY && reads && read_ignore_file(snapshot, path) < 0)
            return error_memory(error, "cannot keep the state of the workspace");
        if (entry->depth)
            return 1;
    }
    return more;
}

static int store(struct snapshot *snapshot, const char *bytes, size_t size, struct error *error)
{
    return spool_append(&snapshot->store, bytes, size) < 0 ? error_system(error, errno, "cannot keep a file") : 0;
}

static bool has_room(const struct snapshot *snapshot, uint64_t size)
{
    uint64_t begun = snapshot->store.size;
    return begun <= snapshot->most_bytes && size <= snapshot->most_bytes - begun;
}

// A link that cannot be read is not kept.
static int store_link(struct snapshot *snapshot, const struct workspace_tree *tree, struct snapshot_item *item,
                      struct error *error)
{
    cleanup_free char *target = workspace_tree_target(tree);
    if (!target || !has_room(snapshot, strlen(target)))
        return 0;
    item->size = strlen(target);
    item->content = snapshot->store.size;
    return store(snapshot, target, item->size, error);
}

// A file that is shorter than its status said, or cannot be read, is not kept. Of one that has grown, the first part
// is.
static int store_file(struct snapshot *snapshot, const struct workspace_tree *tree, struct snapshot_item *item,
                      struct error *error)
{
    static char block[128 << 10];
    struct stat status;
    uint64_t begun = snapshot->store.size, left = item->size;
    if (!has_room(snapshot, left))
        return 0;
    cleanup_fd int fd = left ? workspace_tree_open_file(tree, &status) : -1;
    while (fd >= 0 && left > 0) {
        ssize_t size = read(fd, block, left < sizeof block ? left : sizeof block);
        if (size <= 0)
            break;
        if (store(snapshot, block, (size_t)size, error) < 0)
            return -1;
        left -= (uint64_t)size;
    }
    if (left == 0)
        item->content = begun;
    return 0;
}

static int add_item(struct snapshot *snapshot, const struct workspace_tree *tree,
                    const struct workspace_tree_entry *entry, enum snapshot_kind kind, struct error *error)
{
    struct snapshot_item item = snapshot_item_of(entry),
                         *items = array_grow(snapshot->items, snapshot->count, sizeof item);
    if (!items)
        return error_memory(error, "cannot keep the state of the workspace");
    snapshot->items = items;
    item.path = snapshot->paths.size;
    if (buffer_append(&snapshot->paths, workspace_tree_path(tree), strlen(workspace_tree_path(tree)) + 1) < 0)
        return error_memory(error, "cannot keep the state of the workspace");
    item.kind = kind;
    int stored = 0;
    if (kind == SNAPSHOT_FILE_OR_LINK)
        stored = (S_ISLNK(item.mode) ? store_link : store_file)(snapshot, tree, &item, error);
    snapshot->items[snapshot->count++] = item;
    return stored;
}

struct workspace_tree *snapshot_open_tree(const struct workspace *workspace, struct error *error)
{
    const struct workspace_tree_options options = {.max_depth = DEEPEST, .hidden = true};
    return workspace_tree_open(workspace, ".", &options, error);
}

static int keep_all(struct snapshot *snapshot, struct error *error)
{
    struct workspace_tree_entry entry;
    enum snapshot_kind kind;
    struct workspace_tree *tree = snapshot_open_tree(snapshot->workspace, error);
    int more = tree ? 1 : -1;
    while (more > 0 && (more = snapshot_next(snapshot, tree, true, &entry, &kind, error)) > 0)
        if (add_item(snapshot, tree, &entry, kind, error) < 0)
            more = -1;
    workspace_tree_close(tree);
    return more;
}

// 0, or -1: the caller frees the snapshot.
static int begin(struct snapshot *snapshot, const struct workspace *workspace, const struct snapshot_options *options,
                 struct error *error)
{
    snapshot->workspace = workspace;
    snapshot->most_bytes = options->most_bytes;
    if (spool_open(&snapshot->store, options->directory) < 0)
        return error_system(error, errno, "cannot create a file in %s", options->directory);
    snapshot->left_out = options->left_out ? strdup(options->left_out) : NULL;
    if (options->left_out && !snapshot->left_out)
        return error_memory(error, "cannot keep the state of the workspace");
    return keep_all(snapshot, error);
}

struct snapshot *snapshot_take(const struct workspace *workspace, const struct snapshot_options *options,
                               struct error *error)
{
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return error_memory(error, "cannot keep the state of the workspace"), NULL;
    if (begin(snapshot, workspace, options, error) == 0)
        return snapshot;
    snapshot_free(snapshot);
    return NULL;
}

void snapshot_forget_changes(struct snapshot *snapshot)
{
    while (snapshot->change_count > 0)
        free(snapshot->changes[--snapshot->change_count].path);
}

void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    cleanup_close(&snapshot->store.fd);
    ignore_free(&snapshot->ignore);
    buffer_free(&snapshot->paths);
    free(snapshot->left_out);
    free(snapshot->items);
    snapshot_forget_changes(snapshot);
    free(snapshot->changes);
    free(snapshot);
}

int snapshot_content(const struct snapshot *snapshot, size_t original, struct buffer *content, struct error *error)
{
    if (original < 1 || original > snapshot->count || snapshot->items[original - 1].content == SNAPSHOT_NOT_KEPT)
        return error_set(error, "not_found", 0, "the content was not kept");
    const struct snapshot_item *item = &snapshot->items[original - 1];
    if (spool_read(&snapshot->store, item->content, item->size, content) < 0)
        return error_system(error, errno, "cannot read what %s was", snapshot_path(snapshot, item));
    return 0;
}
