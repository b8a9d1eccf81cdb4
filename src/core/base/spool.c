// SPDX-License-Identifier: Apache-2.0
// A file without a name, see spool.h.
#include "core/base/spool.h"

#include "core/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

int spool_open(struct spool *spool, const char *directory)
{
    cleanup_free char *name = NULL;
    const int flags = O_TMPFILE | O_RDWR | O_CLOEXEC;
    *spool = (struct spool){.fd = *directory ? open(directory, flags, 0600) : memfd_create("spool", MFD_CLOEXEC)};
    if (spool->fd >= 0)
        return 0;
    if (!*directory || asprintf(&name, "%s/.sba-XXXXXX", directory) < 0)
        return -1;
    spool->fd = mkostemp(name, O_CLOEXEC); // some file systems want a name
    return spool->fd < 0 ? -1 : unlink(name);
}

int spool_append(struct spool *spool, const char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = pwrite(spool->fd, bytes + done, size - done, (off_t)(spool->size + done));
        if (count == 0)
            return errno = EIO, -1;
        if (count < 0 && errno != EINTR)
            return -1;
        done += count > 0 ? (size_t)count : 0;
    }
    spool->size += size;
    return 0;
}

int spool_read(const struct spool *spool, uint64_t offset, size_t size, struct buffer *into)
{
    if (buffer_reserve(into, size) < 0)
        return errno = ENOMEM, -1;
    for (ssize_t count; size > 0; offset += (size_t)count, size -= (size_t)count, into->size += (size_t)count) {
        count = pread(spool->fd, into->data + into->size, size, (off_t)offset);
        if (count <= 0)
            return errno = count ? errno : EIO, -1;
    }
    return 0;
}
