// SPDX-License-Identifier: Apache-2.0
// Texts in parts, see parts.h.
#include "core/base/parts.h"

#include "core/base/buffer.h"
#include "core/base/io.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { AHEAD = 16 << 10, SHORT = AHEAD / 4 };

// What was read with a short span, and behind it: those of a result, its entries, lie close together in the journal.
static struct {
    int fd;
    off_t offset;
    size_t size; // 0: nothing
    char bytes[AHEAD];
} ahead; // only the main thread is here

static ssize_t read_short(int fd, off_t at, char *to, size_t size)
{
    if (fd != ahead.fd || at < ahead.offset || at + (off_t)size > ahead.offset + (off_t)ahead.size) {
        ssize_t got = io_read(fd, ahead.bytes, AHEAD, at);
        if (got < 0)
            return got;
        ahead.fd = fd;
        ahead.offset = at;
        ahead.size = (size_t)got;
    }
    size_t before = (size_t)(at - ahead.offset);
    size = size_least(size, ahead.size - before);
    memcpy(to, ahead.bytes + before, size);
    return (ssize_t)size;
}

static ssize_t read_span(const struct part *part, size_t done, char *to, size_t size, bool is_last, struct error *error)
{
    off_t at = part->offset + (off_t)done;
    bool is_direct = is_last || size > SHORT;
    ssize_t got = is_direct ? io_read(part->fd, to, size, at) : read_short(part->fd, at, to, size);
    if (got < 0)
        return error_system(error, errno, "cannot read a part of a text");
    return got || !size ? got
                        : error_set(error, "changed", 0, "a file is shorter than the part of it that was to be read");
}

ssize_t parts_read(struct parts *parts, char *to, size_t room, struct error *error)
{
    size_t given = 0;
    ahead.size = 0; // the file may change until the next call
    while (given < room && parts->count) {
        const struct part *part = parts->part;
        size_t size = size_least(part->size - parts->done, room - given);
        ssize_t count = (ssize_t)size;
        if (part->bytes)
            memcpy(to + given, part->bytes + parts->done, size);
        else if ((count = read_span(part, parts->done, to + given, size, parts->count == 1, error)) < 0)
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
