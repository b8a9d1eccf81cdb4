// SPDX-License-Identifier: Apache-2.0
// Atomic, durable replacement of a file: whoever reads it, at any instant, sees the whole old or the whole new content.
//
// Errors as in error.h; after an error the old content stands (in place: unless the write itself failed).
#ifndef SBA_CORE_FILE_REPLACE_H
#define SBA_CORE_FILE_REPLACE_H

#include "core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

enum file_way { FILE_RENAMED, FILE_IN_PLACE };

// Replaces the file at path by the parts, one after the other, with the permissions mode. A temporary file beside it
// (".NAME.tmp"; what a killed run left there is removed) is written, fsynced (durable) and renamed, and the directory
// fsynced (durable). A link at path is itself replaced, never followed; a directory, FIFO, socket or device is
// "not_a_file".
//
// Where path is a mount point or the directory takes no new file, an existing regular file is written in place: space
// is reserved, one call writes all parts and blanks up to the old end (at most 64 MiB of them), then the file is cut to
// its new size. A kill between the calls leaves the whole old or the whole new, with blanks at its end at most. Not so
// within that one call, where the content is larger than a page: then the file begins with some of the new and ends
// with the rest of the old, or nothing. Where memory for all parts together is out, several calls write them.
int file_replace(const char *path, const struct iovec *parts, size_t count, mode_t mode, bool durable,
                 enum file_way *way, struct error *error);

#endif
