// SPDX-License-Identifier: Apache-2.0
// What the workspace*.c files share, and nobody else.
#ifndef SBA_CORE_WORKSPACE_INTERNAL_H
#define SBA_CORE_WORKSPACE_INTERNAL_H

#include "core/text/text.h"
#include "core/workspace/workspace.h"

#include <stddef.h>

// The target of a link: of the name in the directory, or of the O_PATH descriptor itself if name is "". Owned by the
// caller; NULL and errno.
char *workspace_read_link(int directory, const char *name);

// Fills *error with "not_a_file" and what there is instead. Returns -1.
int workspace_not_a_file(struct error *error, mode_t mode, const char *path);

// Fills *error for a file that is a mount point. Returns -1.
int workspace_fail_mounted(struct error *error, const char *path);

// Writes bytes, and adds them to sha256 unless it is NULL. Obeys the interrupt.
int workspace_write_bytes(int fd, const char *bytes, size_t size, struct text_sha256 *sha256, const char *path,
                          struct error *error);

// Gives a new file, before its mode is set, the group, access list and extended attributes of the one that has the
// name, as far as the user may.
void workspace_keep_attributes(int fd, int directory, const char *name);

#endif
