// SPDX-License-Identifier: Apache-2.0
// A directory that no path leaves: every path is resolved below it, in spite of links and races.
//
// A path is relative to the directory or absolute below it (below the path it was opened with, or below that path
// without links). Links are followed as long as they stay inside. An absolute link leaves, wherever it leads, as with
// the kernel's RESOLVE_BENEATH. A path whose `..` climb above the directory is refused before anything is looked up.
//
// Errors (see error.h): "path_escape" (the message holds "path escapes workspace"), "not_found", "not_a_file" (FIFO,
// socket, device, directory, link), "too_many_links", "name_too_long", "invalid", ... Sizes are bytes.
#ifndef SBA_CORE_WORKSPACE_H
#define SBA_CORE_WORKSPACE_H

#include "core/base/error.h"

#include <sys/stat.h>

struct workspace {
    int fd;     // O_PATH; -1: closed
    char *path; // absolute, as it was given
};

// Opens a directory into *workspace, which the caller closes. It may be closed twice.
int workspace_open(struct workspace *workspace, const char *path, struct error *error);
void workspace_close(struct workspace *workspace);

// Returns the path below the directory, without doubled slashes and ".". "." is the directory itself; a slash at the
// end stays. Owned by the caller. Looks nothing up: links may still lead out, which only workspace_resolve finds.
char *workspace_relative(const struct workspace *workspace, const char *path, struct error *error);

// Opens what a relative path names, confined. flags as in open(2), without O_CREAT; O_CLOEXEC is added. Returns a
// descriptor of the caller, or -1 and errno: EXDEV if the path leaves, ELOOP for a circle of links (with O_NOFOLLOW: a
// link).
int workspace_resolve(const struct workspace *workspace, const char *relative, int flags);

// Fills *error for an errno of workspace_resolve. doing: "read", "write", ... Returns -1.
int workspace_fail(struct error *error, int number, const char *doing, const char *path);

// Opens a regular file to read it, and fills its status. flags: O_NOFOLLOW or 0. Other kinds are "not_a_file" and are
// not opened, so that no FIFO, device or socket notices. Never blocks. Returns a descriptor of the caller, or -1.
int workspace_open_file(const struct workspace *workspace, const char *path, int flags, struct stat *status,
                        struct error *error);

// Opens a directory with O_PATH. Returns a descriptor of the caller, or -1.
int workspace_open_directory(const struct workspace *workspace, const char *path, struct error *error);

// Fills the status of what a path names. A link at its end is not followed: its target goes to *target (owned by the
// caller; NULL for anything else).
int workspace_stat(const struct workspace *workspace, const char *path, struct stat *status, char **target,
                   struct error *error);

// "file", "directory", "symlink", "fifo", "socket" or "device".
const char *workspace_type_name(mode_t mode);

#endif
