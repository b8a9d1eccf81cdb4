// SPDX-License-Identifier: Apache-2.0
// Searches the files of a tree, see search.h.
#include "core/base/cleanup.h"
#include "core/files/workspace.h"
#include "core/files/workspace_tree.h"
#include "core/search/search_internal.h"
#include "core/text/glob.h"

#include <errno.h>
#include <string.h>

struct search_walk {
    struct search_regex *regex;
    const struct workspace *workspace;
    const struct glob *include;
    struct workspace_tree *tree;
    struct search_results *results;
    struct error *error;
};

// Searches the file that the tree is at. A disk error is only counted; any other error ends the search.
static int search_entry(struct search_walk *walk)
{
    struct stat status;
    cleanup_fd int fd = workspace_tree_open_file(walk->tree, &status);
    if (fd < 0) {
        // These three mean that the entry has changed since it was listed.
        walk->results->files_unreadable += errno != ENOENT && errno != ELOOP && errno != EINVAL;
        return 0;
    }
    if (search_descriptor(walk->regex, fd, workspace_tree_path(walk->tree), walk->results, walk->error) == 0)
        return 0;
    if (strcmp(walk->error->code, "io_error") != 0)
        return -1;
    error_clear(walk->error);
    walk->results->files_unreadable++;
    return 0;
}

// Searches the single file that the path names.
static int search_one_file(struct search_walk *walk, const char *path)
{
    struct stat status;
    cleanup_fd int fd = workspace_open_file(walk->workspace, path, &status, walk->error);
    if (fd < 0)
        return -1;
    if (walk->include && !glob_match(walk->include, workspace_tree_path(walk->tree)))
        return 0;
    return search_descriptor(walk->regex, fd, workspace_tree_path(walk->tree), walk->results, walk->error);
}

static int search_all(struct search_walk *walk, const char *path)
{
    struct workspace_tree_entry entry;
    int more = 0, outcome = 0;
    while (outcome == 0 && walk->results->limit == SEARCH_NO_LIMIT &&
           (more = workspace_tree_next(walk->tree, &entry, walk->error)) > 0) {
        if (S_ISDIR(entry.mode) && entry.depth > 0 && strcmp(entry.name, ".git") == 0)
            workspace_tree_skip(walk->tree, &entry);
        else if (S_ISDIR(entry.mode))
            walk->results->files_unreadable += !entry.entered;
        else if (entry.depth == 0)
            outcome = search_one_file(walk, path);
        else if (S_ISREG(entry.mode) && (!walk->include || glob_match(walk->include, workspace_tree_path(walk->tree))))
            outcome = search_entry(walk);
    }
    return more < 0 ? -1 : outcome;
}

int search_files(struct search_regex *regex, const struct workspace *workspace, const char *path,
                 const struct glob *include, struct search_results *results, struct error *error)
{
    const struct workspace_tree_options options = {.max_depth = SIZE_MAX, .hidden = true, .types_only = true};
    struct search_walk walk = {
        .regex = regex, .workspace = workspace, .include = include, .results = results, .error = error};
    walk.tree = workspace_tree_open(workspace, path, &options, error);
    if (!walk.tree)
        return -1;
    int outcome = search_all(&walk, path);
    workspace_tree_close(walk.tree);
    return outcome;
}
