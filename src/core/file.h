// SPDX-License-Identifier: Apache-2.0
// Files and streams of the runner itself, outside the workspace: the job file, the journal, the log.
//
// Errors as in error.h. Paths are taken as given: links in them are followed, but for the last part where it says so.
#ifndef SBA_CORE_FILE_H
#define SBA_CORE_FILE_H

#include "core/buffer.h"
#include "core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// Reads all of a file, pipe or (path "-") standard input into out, at most limit bytes. Waits for a slow writer, but
// not past the deadline or a cancel. Errors: "too_large", "timeout", "cancelled", those of open(2) and read(2).
int file_read(const char *path, size_t limit, struct buffer *out, struct error *error);

// When the first bytes of the last file came, or its end, in milliseconds of clock_now.
int64_t file_read_began(void);

// The same of a regular file, or a link to one, and of nothing else ("not_a_file"): never waits for a writer.
int file_read_regular(const char *path, size_t limit, struct buffer *out, struct error *error);

// Opens a regular file to append to, creating it (0644), and returns its descriptor. Never a link, FIFO or device
// ("not_a_file"). Empties it first, or else cuts off what follows the last newline: a line that was torn. Locks it
// until the process closes the file or ends, so that others see that it is open; who has a lock already keeps it.
int file_open_log(const char *path, bool empty, struct error *error);

// Writes all parts at the descriptor's place, past deadline and cancel too. After an error some may have been written.
int file_write_parts(int fd, const struct iovec *parts, size_t count, struct error *error);

// Writes to a pipe, socket, terminal or file that others may read slowly, or not at all: waits at most timeout
// milliseconds without progress, and `whole` in all from the first wait on (INT64_MAX: no limit). Returns the bytes
// written, fewer than size when the time was up or the reader left.
size_t file_write_within(int fd, const char *bytes, size_t size, int64_t timeout, int64_t whole);

// Creates a directory (0755 less the umask) and those above it. 0 where it exists.
int file_make_directory(const char *path, struct error *error);

// Creates a directory of a new name (0700) in the one given. The path, which the caller frees.
char *file_make_temporary_directory(const char *above, struct error *error);

// Removes a file or link. 0 where there is none.
int file_remove(const char *path, struct error *error);

// Whether another process has the file open as file_open_log opens it. False where that cannot be told.
bool file_is_open(const char *path);

// Removes a directory and all that is in it. Links are removed, not followed.
int file_remove_directory(const char *path, struct error *error);

// The columns of a terminal and its rows, 80 and 24 where it does not say; 0 where fd is none.
int file_terminal_columns(int fd, int *rows);

// Takes a variable out of the environment for good: its bytes are overwritten too, so that /proc/self/environ does not
// show them.
void file_forget_variable(const char *name);

#endif
