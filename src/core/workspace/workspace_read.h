// SPDX-License-Identifier: Apache-2.0
// Reads a file of a workspace in one pass. Errors as in workspace.h, and "timeout", "cancelled", "io_error",
// "out_of_memory".
#ifndef SBA_CORE_WORKSPACE_READ_H
#define SBA_CORE_WORKSPACE_READ_H

#include "core/base/buffer.h"
#include "core/text/text.h"
#include "core/workspace/workspace.h"

#include <stdbool.h>
#include <stdint.h>

// The range to read. Lines end with \n and are counted from offset on.
struct workspace_read_options {
    uint64_t offset;     // bytes to skip
    uint64_t first_line; // from 1; 0: as 1
    uint64_t last_line;  // inclusive; 0: to the end
    uint64_t max_bytes;  // of the range
    size_t max_content;  // bytes of it that content gets
    int flags;           // O_NOFOLLOW: a link is no file
    uint64_t digest;     // a file of at most so many bytes is read to its end, for its SHA-256 and its lines
};

struct workspace_read_result {
    uint64_t from, length; // the range in the file
    bool truncated;        // there is more of it than max_bytes
    uint64_t size;         // of the file: as read for the digest, else as the file system says
    mode_t mode;           // permission bits
    bool has_digest;
    char sha256[TEXT_SHA256_HEX];
    uint64_t lines; // of the file, for the digest; the last one may lack its \n
};

// Appends the beginning of the range to content. Without a digest, nothing is read behind it. After an error, content
// may hold a part of it.
int workspace_read(const struct workspace *workspace, const char *path, const struct workspace_read_options *options,
                   struct buffer *content, struct workspace_read_result *result, struct error *error);

#endif
