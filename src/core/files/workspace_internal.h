// SPDX-License-Identifier: Apache-2.0
// What the workspace*.c files share, and nobody else.
#ifndef SBA_CORE_WORKSPACE_INTERNAL_H
#define SBA_CORE_WORKSPACE_INTERNAL_H

#include "core/files/workspace.h"
#include "core/text/text.h"

#include <stdbool.h>
#include <stddef.h>

// Returns the directory of a relative path, "." if it is a name alone, and *name, the last name, which points into
// path. Owned by the caller; NULL: out of memory.
char *workspace_split(const char *path, const char **name);

// Whether a last name can be that of a file: it is not "", "." or "..".
bool workspace_is_file_name(const char *name);

// Opens a directory (O_PATH) and makes what is missing of it. *kept bytes of relative name directories that were there
// before. A descriptor, or -1 and errno.
int workspace_make_directories(const struct workspace *workspace, const char *relative, size_t *kept);

// Removes the directories of relative after its first kept bytes, if they are empty.
void workspace_remove_directories(const struct workspace *workspace, const char *relative, size_t kept);

// The target of a link: of the name in the directory, or of the O_PATH descriptor itself if name is "". Owned by the
// caller; NULL and errno.
char *workspace_read_link(int directory, const char *name);

// Fills *error with "not_a_file" and what there is instead. Returns -1.
int workspace_not_a_file(struct error *error, mode_t mode, const char *path);

enum { TEMPORARY_NAME_SIZE = sizeof ".sba-01234567" };

// Makes a name for a temporary file or a file set aside. What a crash leaves behind is recognised by it.
void workspace_temporary_name(char name[TEMPORARY_NAME_SIZE]);

bool workspace_is_temporary_name(const char *name);

// Fills a new file. 0; 1: it is not wanted after all; -1 and *error.
typedef int workspace_fill(int fd, void *data, const char *path, struct error *error);

// Makes a temporary file that is to become the one at path, and fills it. mode: permission bits, or -1: 0644 less the
// umask. Returns what fill returns, or -1 and *error; only after 0 there is a file, whose status goes to *status.
int workspace_make_file(int directory, int mode, workspace_fill *fill, void *data, const char *path,
                        char name[TEMPORARY_NAME_SIZE], struct stat *status, struct error *error);

// Writes bytes, and adds them to sha256 unless it is NULL. Obeys the interrupt.
int workspace_write_bytes(int fd, const char *bytes, size_t size, struct text_sha256 *sha256, const char *path,
                          struct error *error);

// Moves a name, never onto something: 0, or -1 and errno EEXIST, ... Race-free if the file system knows
// RENAME_NOREPLACE.
int workspace_move(int from_directory, const char *from, int to_directory, const char *to);

#endif
