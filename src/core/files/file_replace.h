// SPDX-License-Identifier: Apache-2.0
// The atomic, durable replacement of a file: a reader sees the whole old or the whole new content at any instant.
//
// Errors as in error.h. "changed": a file is shorter than its span. After an error the old content stays (in place:
// unless the write itself failed).
#ifndef SBA_CORE_FILE_REPLACE_H
#define SBA_CORE_FILE_REPLACE_H

#include "core/base/parts.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum file_way { FILE_RENAMED, FILE_IN_PLACE };
enum { FILE_UNSYNCED = -1 };

// Replaces the file at path by the parts, one after the other, with the permissions mode. A temporary file beside it
// (".NAME.tmp"; one that a killed run left is removed) is written, synced and renamed, and the directory is synced. A
// link at path is itself replaced, not followed. A directory, FIFO, socket or device is "not_a_file".
//
// until: how long (clock_now) it waits for the disk. Then it renames all the same, and file_replace_sync waits for the
// rest. FILE_UNSYNCED: it does not sync.
//
// If path is a mount point, or another user's in a sticky directory, or the directory takes no new file, an existing
// regular file is overwritten in place, where there is room for all. A kill then may leave a mixture of old and new.
int file_replace(const char *path, const struct parts *parts, mode_t mode, int64_t until, enum file_way *way,
                 struct error *error);

// Identity and permission bits of a directory.
struct file_directory {
    dev_t device;
    ino_t inode; // 0: not known yet
    mode_t mode;
};

// Names the directory of the runner's own files, and fills in what it is unless that is known. Landlock knows no chmod:
// a command may close it, and file_replace then puts its bits back. -1 and errno if it is not there.
int file_replace_keep(const char *path, struct file_directory *directory);

// Makes durable what file_replace, the last time, put there without that, however long it takes.
int file_replace_sync(const char *path, struct error *error);

// Keeps room on the disk for the next file_replace of path: makes its temporary file ahead, with size bytes (at most 1
// MiB), which that call frees. Errors: "no_space", ...
int file_keep_room(const char *path, size_t size, struct error *error);

#endif
