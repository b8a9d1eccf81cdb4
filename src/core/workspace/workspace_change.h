// SPDX-License-Identifier: Apache-2.0
// The parts of a change of several files of a workspace. A link at the end of a path is not followed: the link itself
// is replaced, moved or removed. The runner's own files are refused.
//
// Nothing here holds a descriptor: a patch may have more files than a process can open. Errors as in workspace.h and
// workspace_replace.h.
#ifndef SBA_CORE_WORKSPACE_CHANGE_H
#define SBA_CORE_WORKSPACE_CHANGE_H

#include "core/workspace/workspace.h"

#include <stdbool.h>
#include <stddef.h>

// Writes a regular file, or makes a link, that waits for its place at path, in the nearest directory above that exists.
// mode: permission bits, or WORKSPACE_MODE_AS_BEFORE: 0644 less the umask. "path_escape": the link's target, as
// written, leaves the workspace. Returns where it waits: a relative path of the caller.
char *workspace_stage(const struct workspace *workspace, const char *path, const char *bytes, size_t size, int mode,
                      struct error *error);
char *workspace_stage_link(const struct workspace *workspace, const char *path, const char *target,
                           struct error *error);

// Moves a file or link. Makes missing directories. aside: what is at `to` gets this path beside it first, as a link if
// the file system has links: something stays there; "": it is replaced; NULL: nothing may be there.
int workspace_move(const struct workspace *workspace, const char *from, const char *to, const char *aside,
                   struct error *error);

// Removes a file or link, or an empty directory.
int workspace_remove(const struct workspace *workspace, const char *path, bool directory, struct error *error);

// Makes a directory and those above it, where they are missing.
int workspace_make_directory(const struct workspace *workspace, const char *path, struct error *error);

// Changes the permission bits of a file or directory that is readable or writable.
int workspace_chmod(const struct workspace *workspace, const char *path, mode_t mode, struct error *error);

#endif
