// SPDX-License-Identifier: Apache-2.0
// Atomic, durable replacement of a file: a reader sees the whole old or the whole new content at any instant.
//
// Errors as in error.h. After an error the old content stays (in place: unless the write itself failed).
#ifndef SBA_CORE_FILE_REPLACE_H
#define SBA_CORE_FILE_REPLACE_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

enum file_way { FILE_RENAMED, FILE_IN_PLACE };

// Replaces the file at path by the parts, one after the other, with the permissions mode. A temporary file beside it
// (".NAME.tmp"; one that a killed run left is removed) is written, synced (durable) and renamed, and the directory is
// synced (durable). A link at path is itself replaced, not followed. A directory, FIFO, socket or device is
// "not_a_file".
//
// If path is a mount point, or another user's in a sticky directory, or the directory takes no new file, an existing
// regular file is written in place: space is reserved, one call writes all parts and blanks up to the old end (at most
// 64 MiB of them), then the file is cut to its new size. A kill between these calls leaves the whole old content or the
// whole new content, maybe with blanks at its end. A kill during that one call, if the content is larger than a page,
// leaves a file that begins with some of the new content and ends with the rest of the old, or nothing. If there is no
// memory for all parts together, several calls write them.
int file_replace(const char *path, const struct iovec *parts, size_t count, mode_t mode, bool durable,
                 enum file_way *way, struct error *error);

// Keeps room on the disk for the next file_replace of path: makes its temporary file ahead, with size bytes (at most 1
// MiB), which that call frees. Errors: "no_space", ...
int file_keep_room(const char *path, size_t size, struct error *error);

#endif
