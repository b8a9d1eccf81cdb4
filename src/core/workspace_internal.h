// SPDX-License-Identifier: Apache-2.0
// What the workspace*.c files share, and nobody else.
#ifndef SBA_CORE_WORKSPACE_INTERNAL_H
#define SBA_CORE_WORKSPACE_INTERNAL_H

#include "core/text.h"
#include "core/workspace.h"

#include <stdbool.h>
#include <stddef.h>

// Where something is, or is to be: a name in a directory.
struct place {
    int directory;        // O_PATH, owned; -1: none
    char *directory_path; // relative to the workspace, owned
    char *name;           // owned
    size_t kept;          // so many bytes of directory_path name directories that were there before, the rest was made
};

// Finds the place of a relative path. make: missing directories are made. follow: a link at the end is followed to
// where it leads, be there something or not.
int workspace_place(const struct workspace *workspace, const char *relative, bool make, bool follow,
                    struct place *place, struct error *error);
void workspace_place_free(struct place *place);

// Opens a directory (O_PATH), making what is missing of it; *kept as in struct place. A descriptor, or -1 and errno.
int workspace_make_directories(const struct workspace *workspace, const char *relative, size_t *kept);

// Removes the directories of relative beyond its first kept bytes, as far as they are empty.
void workspace_remove_directories(const struct workspace *workspace, const char *relative, size_t kept);

// The target of a link: of the name in the directory, or of the O_PATH descriptor itself where name is "". Owned by the
// caller; NULL and errno.
char *workspace_read_link(int directory, const char *name);

// Fills *error with "not_a_file", saying what there is instead. Returns -1.
int workspace_not_a_file(struct error *error, mode_t mode, const char *path);

enum { TEMPORARY_NAME_SIZE = sizeof ".sba-01234567" };

// A name for a temporary file or a file set aside. What a crash leaves behind is known by it.
void workspace_temporary_name(char name[TEMPORARY_NAME_SIZE]);

bool workspace_is_temporary_name(const char *name);

// Makes a new temporary file in a directory. A descriptor to write to, or -1 and errno.
int workspace_temporary_file(int directory, mode_t mode, char name[TEMPORARY_NAME_SIZE]);

// Writes bytes, which sha256 (unless NULL) takes in too; obeys the interrupt.
int workspace_write_bytes(int fd, const char *bytes, size_t size, struct text_sha256 *sha256, const char *path,
                          struct error *error);

// Moves a name, never onto something: 0, or -1 and errno EEXIST, ... Race-free wherever the file system knows
// RENAME_NOREPLACE or links.
int workspace_move(int from_directory, const char *from, int to_directory, const char *to);

#endif
