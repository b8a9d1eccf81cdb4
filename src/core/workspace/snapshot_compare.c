// SPDX-License-Identifier: Apache-2.0
// Compares a workspace with what it was, see snapshot.h.
#include "core/base/cleanup.h"
#include "core/workspace/snapshot_internal.h"

#include <string.h>
#include <unistd.h>

// The end of a path comes first, then a slash, then all other bytes.
static int rank(char byte)
{
    return byte == '/' ? 1 : (unsigned char)byte + (byte != '\0');
}

// Compares paths in the order of a walk: names in byte order, a directory before its entries.
static int compare_paths(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return rank(*a) - rank(*b);
}

static bool same_as_stored(const struct snapshot *snapshot, const struct snapshot_item *item, int fd)
{
    char now[4096], then[sizeof now];
    for (uint64_t at = 0; at < item->size;) {
        ssize_t size = read(fd, now, sizeof now);
        if (size <= 0 || pread(snapshot->store.fd, then, (size_t)size, (off_t)(item->content + at)) != size ||
            memcmp(now, then, (size_t)size) != 0)
            return false;
        at += (uint64_t)size;
    }
    return true;
}

// Whether the content is the same, though times or inode differ.
static bool same_content(const struct snapshot *snapshot, const struct workspace_tree *tree,
                         const struct snapshot_item *before, const struct snapshot_item *after)
{
    if (before->content == SNAPSHOT_NOT_KEPT)
        return false;
    if (S_ISLNK(after->mode)) {
        cleanup_free char *target = workspace_tree_target(tree);
        cleanup_buffer struct buffer old = {0};
        bool read = spool_read(&snapshot->store, before->content, before->size, &old) == 0;
        return read && target && strlen(target) == old.size && memcmp(target, old.data ? old.data : "", old.size) == 0;
    }
    struct stat status;
    cleanup_fd int fd = before->size == after->size ? workspace_tree_open_file(tree, &status) : -1;
    return fd >= 0 && same_as_stored(snapshot, before, fd);
}

static int add_change(struct snapshot *snapshot, const char *path, enum snapshot_action action,
                      const struct snapshot_item *before, const struct snapshot_item *after, struct error *error)
{
    struct snapshot_change *changes = array_grow(snapshot->changes, snapshot->change_count, sizeof *changes);
    if (changes)
        snapshot->changes = changes;
    char *copy = changes ? strdup(path) : NULL;
    if (!copy)
        return error_memory(error, "cannot keep the state of the workspace");
    struct snapshot_change *change = &changes[snapshot->change_count++];
    *change = (struct snapshot_change){.path = copy, .action = action};
    if (before && before->content != SNAPSHOT_NOT_KEPT)
        change->original = (size_t)(before - snapshot->items) + 1;
    if (before)
        change->before = (struct snapshot_side){before->mode, before->size};
    if (after)
        change->after = (struct snapshot_side){after->mode, after->size};
    return 0;
}

static bool is_untouched(const struct snapshot_item *before, const struct snapshot_item *after)
{
    return before->mode == after->mode && before->size == after->size && before->inode == after->inode &&
           before->modified == after->modified && before->changed == after->changed;
}

static int compare_item(struct snapshot *snapshot, const struct workspace_tree *tree,
                        const struct snapshot_item *before, const struct snapshot_item *after, struct error *error)
{
    const char *path = workspace_tree_path(tree);
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

static bool is_within(const char *path, const char *directory)
{
    size_t size = strlen(directory);
    return strncmp(path, directory, size) == 0 && (!path[size] || path[size] == '/');
}

// Both walks side by side, because they have the same order.
struct comparison {
    struct snapshot *snapshot;
    struct workspace_tree *tree;
    size_t at;           // of the items: those before are done
    const char *unknown; // the last directory that could not be read at the beginning; NULL: none
    struct error *error;
};

// The item to compare next; NULL at the end.
static const struct snapshot_item *next_before(const struct comparison *comparison)
{
    const struct snapshot *snapshot = comparison->snapshot;
    return comparison->at < snapshot->count ? &snapshot->items[comparison->at] : NULL;
}

// An item that the walk of now has not met: what was a file is deleted, what was closed is unknown still.
static int pass_item(struct comparison *comparison, const struct snapshot_item *item)
{
    struct snapshot *snapshot = comparison->snapshot;
    const char *path = snapshot_path(snapshot, item);
    if (item->kind == SNAPSHOT_FILE_OR_LINK)
        return add_change(snapshot, path, SNAPSHOT_DELETED, item, NULL, comparison->error);
    if (item->kind != SNAPSHOT_CLOSED)
        return 0;
    comparison->unknown = path;
    return add_change(snapshot, path, SNAPSHOT_UNREADABLE, NULL, NULL, comparison->error);
}

// Goes on to the item of the path, or to where it would be (NULL: to the end). A closed one of that path is passed too.
static int pass_items(struct comparison *comparison, const char *path)
{
    const struct snapshot_item *item;
    while ((item = next_before(comparison))) {
        int order = path ? compare_paths(snapshot_path(comparison->snapshot, item), path) : -1;
        if (order > 0 || (order == 0 && item->kind != SNAPSHOT_CLOSED))
            return 0;
        if (pass_item(comparison, item) < 0)
            return -1;
        comparison->at++;
    }
    return 0;
}

// Whether git cannot put a file at the path: there was what no patch removes, because it is no file or was left out, or
// is an empty directory below the path. (One at the path itself goes.) item: the first one at or behind the path.
static bool is_blocked(const struct snapshot *snapshot, const struct snapshot_item *item, const char *path)
{
    const struct snapshot_item *end = snapshot->items + snapshot->count;
    for (; item && item < end && is_within(snapshot_path(snapshot, item), path); item++) {
        const char *known = snapshot_path(snapshot, item);
        bool is_empty = item + 1 == end || !is_within(snapshot_path(snapshot, item + 1), known);
        if (item->kind == SNAPSHOT_LEFT_OUT || item->kind == SNAPSHOT_CLOSED ||
            (item->kind == SNAPSHOT_DIRECTORY && is_empty && strcmp(known, path) != 0))
            return true;
    }
    return false;
}

static int compare_file(struct comparison *comparison, const struct workspace_tree_entry *entry)
{
    struct snapshot *snapshot = comparison->snapshot;
    const char *path = workspace_tree_path(comparison->tree);
    const struct snapshot_item after = snapshot_item_of(entry), *before = next_before(comparison);
    if (before && before->kind == SNAPSHOT_FILE_OR_LINK && strcmp(snapshot_path(snapshot, before), path) == 0) {
        comparison->at++;
        return compare_item(snapshot, comparison->tree, before, &after, comparison->error);
    }
    if (add_change(snapshot, path, SNAPSHOT_CREATED, NULL, &after, comparison->error) < 0)
        return -1;
    snapshot->changes[snapshot->change_count - 1].blocked = is_blocked(snapshot, before, path);
    return 0;
}

// What cannot be read now may be as it was.
static int compare_unreadable(struct comparison *comparison)
{
    const struct snapshot_item *item;
    const char *path = workspace_tree_path(comparison->tree);
    while ((item = next_before(comparison)) && is_within(snapshot_path(comparison->snapshot, item), path))
        comparison->at++;
    return add_change(comparison->snapshot, path, SNAPSHOT_UNREADABLE, NULL, NULL, comparison->error);
}

static int find_changes(struct comparison *comparison)
{
    struct workspace_tree_entry entry;
    enum snapshot_kind kind;
    int more = 0, outcome = 0;
    while (outcome == 0 && (more = snapshot_next(comparison->snapshot, comparison->tree, false, &entry, &kind,
                                                 comparison->error)) > 0) {
        const char *path = workspace_tree_path(comparison->tree);
        if (kind != SNAPSHOT_FILE_OR_LINK && kind != SNAPSHOT_CLOSED)
            continue;
        outcome = pass_items(comparison, path);
        if (outcome < 0 || (comparison->unknown && is_within(path, comparison->unknown)))
            continue;
        outcome = kind == SNAPSHOT_CLOSED ? compare_unreadable(comparison) : compare_file(comparison, &entry);
    }
    return outcome < 0 || more < 0 ? -1 : pass_items(comparison, NULL);
}

long snapshot_compare(struct snapshot *snapshot, const struct snapshot_change **changes, struct error *error)
{
    snapshot_forget_changes(snapshot);
    struct workspace_tree *tree = snapshot_open_tree(snapshot->workspace, error);
    if (!tree)
        return -1;
    struct comparison comparison = {.snapshot = snapshot, .tree = tree, .error = error};
    int outcome = find_changes(&comparison);
    workspace_tree_close(tree);
    if (outcome < 0)
        return -1;
    *changes = snapshot->changes;
    return (long)snapshot->change_count;
}
