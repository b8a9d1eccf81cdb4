// SPDX-License-Identifier: Apache-2.0
// What the workspace*.c files share, and nobody else.
#ifndef SBA_CORE_WORKSPACE_INTERNAL_H
#define SBA_CORE_WORKSPACE_INTERNAL_H

#include "core/text/text.h"
#include "core/workspace/workspace_change.h"

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
// before. A descriptor, or -1 and errno.
int workspace_make_directories(const struct workspace *workspace, const char *relative, size_t *kept);

// The target of a link: of the name in the directory, or of the O_PATH descriptor itself if name is "". Owned by the
// caller; NULL and errno.
char *workspace_read_link(int directory, const char *name);

// Fills *error with "not_a_file" and what there is instead. Returns -1.
int workspace_not_a_file(struct error *error, mode_t mode, const char *path);

// Fills *error for a file that is a mount point. Returns -1.
int workspace_fail_mounted(struct error *error, const char *path);

// Whether this process has made up the temporary name.
bool workspace_made_name(const char *name);

// Whether it is one of those that a run makes whose first one is known.
bool workspace_is_temporary_name(const char *name, const char *first);

typedef int workspace_fill(int fd, void *data, const char *path, struct error *error);

// Makes a temporary file that is to become the one at path, and fills it. mode: permission bits, or -1: 0644 less the
// umask.
int workspace_make_file(int directory, int mode, workspace_fill *fill, void *data, const char *path,
                        char name[WORKSPACE_TEMPORARY_SIZE], struct error *error);

// Writes bytes, and adds them to sha256 unless it is NULL. Obeys the interrupt.
int workspace_write_bytes(int fd, const char *bytes, size_t size, struct text_sha256 *sha256, const char *path,
                          struct error *error);

// Gives a new file, before its mode is set, the group, access list and extended attributes of the one that has the
// name, as far as the user may.
void workspace_keep_attributes(int fd, int directory, const char *name);

// Moves a name, never onto something: 0, or -1 and errno EEXIST, ... Race-free if the file system knows
// RENAME_NOREPLACE.
int workspace_rename_new(int from_directory, const char *from, int to_directory, const char *to);

#endif
