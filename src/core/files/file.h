// SPDX-License-Identifier: Apache-2.0
// Files of the runner itself, outside the workspace: the job file, the journal.
//
// Errors as in error.h. Links in paths are followed, except in the last part where it says so.
#ifndef SBA_CORE_FILE_H
#define SBA_CORE_FILE_H

#include "core/base/buffer.h"
#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// Reads all of a file, pipe or (path "-") standard input into out, at most limit bytes. Waits for a slow writer, but
// not past the deadline or a cancel. regular: anything but a regular file or a link to one is "not_a_file", so that it
// never waits for a writer. Returns when the first bytes came, or the end, in milliseconds of clock_now. Errors:
// "too_large", "timeout", "cancelled", those of open(2) and read(2).
int64_t file_read(const char *path, size_t limit, bool regular, struct buffer *out, struct error *error);

// Opens a regular file to append to and returns its descriptor. create: if there is none, creates it (0644). A link,
// FIFO or device is "not_a_file".
int file_open_log(const char *path, bool create, struct error *error);

// Locks it (flock) until all copies of the descriptor are closed. Errors: "locked" by another, or what flock says on
// a file system without locks.
int file_lock_log(int fd, struct error *error);

// Reads all of it into out, at most limit bytes.
int file_read_log(int fd, size_t limit, struct buffer *out, struct error *error);

// Empties it, or else cuts off a torn line after the last newline. From now on file_is_open is true for others.
int file_cut_log(int fd, bool empty, struct error *error);

// Writes all parts where the descriptor stands, also past the deadline and after a cancel. After an error some of them
// may have been written.
int file_write_parts(int fd, const struct iovec *parts, size_t count, struct error *error);

// Creates a directory (0755 less the umask) and those above it. 0 also if it exists.
int file_make_directory(const char *path, struct error *error);

// Creates a directory (0700). If it exists, it must be no link, belong to this user and be closed to all others
// (permission_denied).
int file_make_private_directory(const char *path, struct error *error);

// Creates a directory with a new name (0700) in the one given. Returns its path, which the caller frees.
char *file_make_temporary_directory(const char *above, struct error *error);

// Whether another process has the file open after file_cut_log. False also if that cannot be told.
bool file_is_open(const char *path);

// Removes a directory and all that is in it. Links are removed, not followed.
int file_remove_directory(const char *path, struct error *error);

#endif
