// SPDX-License-Identifier: Apache-2.0
// Directories of a workspace, and names in them: of files that need not exist, and of temporary ones. Errors as in
// workspace.h and workspace_replace.h.
#ifndef SBA_CORE_WORKSPACE_DIRECTORY_H
#define SBA_CORE_WORKSPACE_DIRECTORY_H

#include "core/workspace/workspace.h"

#include <stdbool.h>
#include <stddef.h>

// Returns the directory of a relative path, "." if it is a name alone, and *name, the last name, which points into
// path. Owned by the caller; NULL: out of memory.
char *workspace_split(const char *path, const char **name);

// -1 ("not_a_file", "path_escape") unless the last name of a relative path can be that of a file: it is not "", "." or
// "..".
int workspace_check_name(const struct workspace *workspace, const char *relative, const char *path,
                         struct error *error);

// A file, which need not exist, by its name in its directory.
struct workspace_place {
    char *path;       // relative, owned
    const char *name; // points into it
    char *above;      // the path of the directory, owned
    size_t kept;      // so many bytes of above name directories that were there before
    int directory;    // O_PATH
    bool is_lent;     // the descriptor is not the place's own
};

// Opens the place of a relative path, which it takes (NULL: *error is filled). makes: makes missing directories.
// beside: an open place (or NULL), which lends its directory where it has the same, and must be closed later. Own files
// of the runner are refused. To be closed also after a failure.
int workspace_place_open(struct workspace_place *place, const struct workspace *workspace, char *relative, bool makes,
                         const struct workspace_place *beside, const char *path, struct error *error);
void workspace_place_close(struct workspace_place *place);

#define workspace_cleanup_place __attribute__((cleanup(workspace_place_close)))

// Opens a directory (O_PATH) and makes what is missing of it. *kept bytes of relative name directories that were there
// before. A descriptor of the caller, or -1 and errno.
int workspace_make_directories(const struct workspace *workspace, const char *relative, size_t *kept);

// Removes the directories of a relative path after its first kept bytes, if they are empty. Keeps errno.
void workspace_remove_directories(const struct workspace *workspace, const char *relative, size_t kept);

enum { WORKSPACE_TEMPORARY_SIZE = sizeof ".sba-0123456789abcdef" };

// Makes a name for a temporary file or a file set aside. What a crash leaves behind is recognised by the first of them.
void workspace_temporary_name(char name[WORKSPACE_TEMPORARY_SIZE]);

// Whether this process has made up the temporary name.
bool workspace_made_name(const char *name);

// Whether it is one of those that a run makes whose first one is known.
bool workspace_is_temporary_name(const char *name, const char *first);

typedef int workspace_fill(int fd, void *data, const char *path, struct error *error);

// Makes a temporary file that is to become the one at path, and fills it. mode: permission bits, or -1: 0644 less the
// umask.
int workspace_make_file(int directory, int mode, workspace_fill *fill, void *data, const char *path,
                        char name[WORKSPACE_TEMPORARY_SIZE], struct error *error);

// Moves a name, never onto something: 0, or -1 and errno EEXIST, ... Race-free if the file system knows
// RENAME_NOREPLACE.
int workspace_rename_new(int from_directory, const char *from, int to_directory, const char *to);

#endif
