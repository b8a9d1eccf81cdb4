// SPDX-License-Identifier: Apache-2.0
// A text in parts, bytes and spans of files, so that it is never in memory as a whole. Errors as in error.h; "changed":
// a file is shorter than its span.
#ifndef SBA_CORE_PARTS_H
#define SBA_CORE_PARTS_H

#include "core/base/error.h"

#include <stddef.h>
#include <sys/types.h>

struct part {
    const char *bytes; // borrowed; NULL: a span of fd
    size_t size;
    int fd;
    off_t offset;
};

struct parts {
    const struct part *part; // borrowed
    size_t count;
    size_t done; // bytes of the first part that were read
};

// Copies the next bytes, and leaves them out of *parts. Returns how many: fewer than room at the end.
ssize_t parts_read(struct parts *parts, char *to, size_t room, struct error *error);

// Bytes of all parts.
size_t parts_size(const struct parts *parts);

#endif
