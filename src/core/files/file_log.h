// SPDX-License-Identifier: Apache-2.0
// A file to which lines are appended, of which spans are read again: the journal. Errors as in error.h.
#ifndef SBA_CORE_FILE_LOG_H
#define SBA_CORE_FILE_LOG_H

#include "core/files/file.h"

#include <stdbool.h>
#include <stdint.h>

struct file_log {
    int fd;       // -1: closed
    int64_t size; // since it was cut, or new
    bool guarded;
    struct text_sha256 digest; // guarded: of all that was appended
    struct text_sha256 lines;  // guarded: of all whole lines
};

// Opens a regular file. create: if there is none, creates it (0644). A link, FIFO or device is "not_a_file".
int file_log_open(struct file_log *log, const char *path, bool create, struct error *error);

// Opens a regular file, also through links, of which others write. Errors: "not_a_file", ...
int file_log_open_to_read(struct file_log *log, const char *path, struct error *error);

// Opens a file that has no name.
int file_log_open_memory(struct file_log *log, struct error *error);

// Locks it (flock) until all copies of the descriptor are closed. Errors: "locked" by another, or what flock says on
// a file system without locks.
int file_log_lock(struct file_log *log, struct error *error);

// Whether another process has locked the file. False also if that cannot be told.
bool file_log_is_locked(const char *path);

// Leaves so many bytes of it. Without this, a line that could not be appended whole stays torn.
int file_log_cut(struct file_log *log, int64_t size, struct error *error);

// Appends parts, also past the deadline; goes_on: of a line that is not whole yet. Returns the size of the file.
int64_t file_log_append(struct file_log *log, const struct parts *parts, bool goes_on, struct error *error);

// Reads the line at an offset: its first bytes, at most so many, into *head, which is empty. Returns its size, with the
// newline that makes it whole; 0 at the end of the file. An error is never taken for the end. A NUL is "invalid_json":
// a file may have a hole of any size.
int64_t file_log_line(const struct file_log *log, int64_t at, size_t most, struct buffer *head, bool *is_whole,
                      struct error *error);

// From now on file_log_is_unchanged finds out whether others have written to it. A read that fails tells nothing.
int file_log_guard(struct file_log *log, struct error *error);
bool file_log_is_unchanged(const struct file_log *log);

#endif
