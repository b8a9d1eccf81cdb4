// SPDX-License-Identifier: Apache-2.0
// A file without a name, see spool.h.
#include "core/base/spool.h"

#include "core/base/cleanup.h"
#include "core/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

int spool_open(struct spool *spool, const char *directory)
{
    *spool = (struct spool){.fd = -1};
    if (!*directory) {
        spool->fd = memfd_create("spool", MFD_CLOEXEC);
        return spool->fd < 0 ? -1 : 0;
    }
    spool->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    cleanup_free char *name = NULL;
    if (spool->fd >= 0 || asprintf(&name, "%s/.sba-XXXXXX", directory) < 0)
        return spool->fd < 0 ? -1 : 0;
    spool->fd = mkostemp(name, O_CLOEXEC); // some file systems want a name
    return spool->fd < 0 ? -1 : unlink(name);
}

int spool_append(struct spool *spool, const char *bytes, size_t size)
{
    if (io_write(spool->fd, bytes, size, (off_t)spool->size) < 0)
        return -1;
    spool->size += size;
    return 0;
}

int spool_read(const struct spool *spool, uint64_t offset, size_t size, struct buffer *into)
{
    if (buffer_reserve(into, size) < 0)
        return errno = ENOMEM, -1;
    size_t done = 0;
    while (done < size) {
        ssize_t count = io_read(spool->fd, into->data + into->size + done, size - done, (off_t)(offset + done));
        if (count <= 0)
            return errno = count ? errno : EIO, -1;
        done += (size_t)count;
    }
    into->size += size;
    return 0;
}
