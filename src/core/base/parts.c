// SPDX-License-Identifier: Apache-2.0
// Texts in parts, see parts.h.
#include "core/base/parts.h"

#include "core/base/buffer.h"
#include "core/base/io.h"

#include <errno.h>
#include <string.h>

static ssize_t read_span(const struct part *part, size_t done, char *to, size_t size, struct error *error)
{
    ssize_t got = io_read(part->fd, to, size, part->offset + (off_t)done);
    if (got < 0)
        return error_system(error, errno, "cannot read a part of a text");
    return got || !size ? got
                        : error_set(error, "changed", 0, "a file is shorter than the part of it that was to be read");
}

ssize_t parts_read(struct parts *parts, char *to, size_t room, struct error *error)
{
    size_t given = 0;
    while (given < room && parts->count) {
        const struct part *part = parts->part;
        size_t size = size_least(part->size - parts->done, room - given);
        ssize_t count = (ssize_t)size;
        if (part->bytes)
            memcpy(to + given, part->bytes + parts->done, size);
        else if ((count = read_span(part, parts->done, to + given, size, error)) < 0)
            return -1;
        given += (size_t)count;
        parts->done += (size_t)count;
        if (parts->done == part->size)
            *parts = (struct parts){parts->part + 1, parts->count - 1, 0};
    }
    return (ssize_t)given;
}

size_t parts_size(const struct parts *parts)
{
    size_t size = 0;
    for (size_t i = 0; i < parts->count; i++)
        size += parts->part[i].size;
    return size;
}
