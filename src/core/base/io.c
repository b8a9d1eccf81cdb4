// SPDX-License-Identifier: Apache-2.0
// Reads and writes, see io.h.
#include "core/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t io_read(int fd, void *to, size_t size, off_t offset)
{
    ssize_t count;
    do
        count = offset == IO_HERE ? read(fd, to, size) : pread(fd, to, size, offset);
    while (count < 0 && errno == EINTR);
    return count;
}

static ssize_t write_some(int fd, const char *bytes, size_t size, off_t offset)
{
    const struct iovec all = {.iov_base = (void *)bytes, .iov_len = size};
    if (offset == IO_OWN)
        return writev(fd, &all, 1);
    return offset == IO_HERE ? write(fd, bytes, size) : pwrite(fd, bytes, size, offset);
}

int io_write(int fd, const void *bytes, size_t size, off_t offset)
{
    size_t done = 0;
    while (done < size) {
        off_t to = offset < 0 ? offset : offset + (off_t)done;
        ssize_t count = write_some(fd, (const char *)bytes + done, size - done, to);
        if (count == 0)
            errno = EIO;
        if (count == 0 || (count < 0 && errno != EINTR))
            return -1;
        if (count > 0)
            done += (size_t)count;
    }
    return 0;
}

int io_duplicate(int fd)
{
    return (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
}

void io_forget(int event_fd)
{
    uint64_t count;
    ssize_t ignored = read(event_fd, &count, sizeof count);
    (void)ignored;
}
