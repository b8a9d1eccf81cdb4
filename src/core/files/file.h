// SPDX-License-Identifier: Apache-2.0
// Files of the runner itself, outside the workspace: the job file, directories.
//
// Errors as in error.h. Links in paths are followed, except in the last part where it says so.
#ifndef SBA_CORE_FILE_H
#define SBA_CORE_FILE_H

#include "core/base/buffer.h"
#include "core/base/parts.h"
#include "core/text/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Reads all of a file, pipe or (path "-") standard input into out, at most limit bytes. Waits for a slow writer, but
// not past the deadline or a cancel. regular: anything but a regular file or a link to one is "not_a_file", so that it
// never waits for a writer. Returns when the first bytes came, or the end, in milliseconds of clock_now. Errors:
// "too_large", "timeout", "cancelled", those of open(2) and read(2).
int64_t file_read(const char *path, size_t limit, bool regular, struct buffer *out, struct error *error);

// Bytes that are read or written at once.
enum { FILE_BLOCK = 64 << 10 };

// Writes all parts where the descriptor stands, also past the deadline and after a cancel, and adds them to the digest
// (NULL: none). what: for errors, a path. After an error some of them may have been written.
int file_write_parts(int fd, const struct parts *parts, struct text_sha256 *digest, const char *what,
                     struct error *error);

// Creates a directory (0755 less the umask) and those above it. 0 also if it exists.
int file_make_directory(const char *path, struct error *error);

// Creates a directory (0700). If it exists, it must be no link, belong to this user and be closed to all others
// (permission_denied).
int file_make_private_directory(const char *path, struct error *error);

// Creates a directory with a new name (0700) in the one given. Returns its path, which the caller frees.
char *file_make_temporary_directory(const char *above, struct error *error);

// Removes a directory and all that is in it, within so many milliseconds. Links are removed, not followed.
int file_remove_directory(const char *path, int64_t milliseconds, struct error *error);

#endif
