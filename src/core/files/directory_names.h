// SPDX-License-Identifier: Apache-2.0
// The names in a directory, in byte order.
#ifndef SBA_CORE_DIRECTORY_NAMES_H
#define SBA_CORE_DIRECTORY_NAMES_H

#include "core/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct directory_name {
    uint64_t order; // the first eight bytes of the name, so that most comparisons need no more
    const char *name;
    unsigned char type; // DT_*
};

// All zero before the first use; its memory is used again by the next reading.
struct directory_names {
    struct directory_name *items; // with room to sort them
    size_t count, capacity;
    struct buffer text; // NUL-terminated names, each after its type
};

// Replaces the names by those of an open directory: with hidden, also those that begin with a dot, but for "." and
// "..". Stops reading after `most` names, in no order (0: reads all). 0; 1: there are more; -1 and errno (EINTR: the
// interrupt). Not for several threads at once.
int directory_names_read(struct directory_names *names, int fd, bool hidden, size_t most);

void directory_names_free(struct directory_names *names);

#endif
