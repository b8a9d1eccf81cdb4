// SPDX-License-Identifier: Apache-2.0
// Replacing a file of a workspace atomically: a temporary file beside it, then a rename; or appending to it. Errors as
// in workspace.h, and "already_exists", "no_space", "permission_denied", "timeout", "cancelled", "io_error". After an
// error the file is as it was, no temporary file is left, and directories that were made are gone again.
#ifndef SBA_CORE_WORKSPACE_REPLACE_H
#define SBA_CORE_WORKSPACE_REPLACE_H

#include "core/text/text.h"
#include "core/workspace/workspace.h"

#include <stdbool.h>
#include <stdint.h>

enum { WORKSPACE_MODE_AS_BEFORE = -1 };

struct workspace_write_options {
    int mode;       // permission bits, at most 0777; WORKSPACE_MODE_AS_BEFORE: those of the file there is, else 0644
                    // less the umask
    bool overwrite; // false: "already_exists" where there is something
    bool append;    // in place, to what the file holds
};

struct workspace_write_result {
    uint64_t size;
    bool created;                 // nothing was there
    char sha256[TEXT_SHA256_HEX]; // "" after an append in place
};

// Writes a regular file. A link at the end of the path is followed: what it leads to, inside, is replaced or made. The
// new file belongs to the runner's user. Set-user-id and the like are not kept.
int workspace_write(const struct workspace *workspace, const char *path, const char *bytes, size_t size,
                    const struct workspace_write_options *options, struct workspace_write_result *result,
                    struct error *error);

#endif
