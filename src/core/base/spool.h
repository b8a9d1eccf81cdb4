// SPDX-License-Identifier: Apache-2.0
// Bytes that memory should not hold: in a file without a name, which is gone with its descriptor.
// Functions return 0, or -1 with errno.
#ifndef SBA_CORE_SPOOL_H
#define SBA_CORE_SPOOL_H

#include "core/base/buffer.h"

#include <stdint.h>

struct spool {
    int fd; // -1: closed
    uint64_t size;
};

// Opens an empty one in the directory; "": in memory, but not in ours.
int spool_open(struct spool *spool, const char *directory);

// Appends all the bytes, or none.
int spool_append(struct spool *spool, const char *bytes, size_t size);

// Appends to `into` the bytes from offset on, all of which must be there.
int spool_read(const struct spool *spool, uint64_t offset, size_t size, struct buffer *into);

#endif
