// SPDX-License-Identifier: Apache-2.0
// Reads and writes that signals do not end early. Functions return -1 with errno.
#ifndef SBA_CORE_IO_H
#define SBA_CORE_IO_H

#include <stddef.h>
#include <sys/types.h>

// In place of an offset: where the descriptor stands. IO_OWN: of the runner's own files, which writev tells from those
// of steps in a trace.
enum { IO_HERE = -1, IO_OWN = -2 };

// Reads as many bytes as there are at once, at most size. Returns how many; 0: the end.
ssize_t io_read(int fd, void *to, size_t size, off_t offset);

// Writes all bytes, in one call if the kernel takes them so. After an error some of them may have been written. A
// write that takes none is EIO: trying again would go on for ever.
int io_write(int fd, const void *bytes, size_t size, off_t offset);

// A second descriptor, closed on exec. The C library's fcntl would set that flag a second time.
int io_duplicate(int fd);

// Forgets what an eventfd or a timerfd, which does not block, has counted.
void io_forget(int event_fd);

#endif
