// SPDX-License-Identifier: Apache-2.0
// Standard streams, see stream.h.
#include "core/files/stream.h"

#include "core/base/clock.h"
#include "core/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEFAULT_COLUMNS = 80 };

static bool is_writable(int fd, int timeout)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    return poll(&wait, 1, timeout) > 0 && !(wait.revents & (POLLERR | POLLNVAL));
}

// How to write without waiting.
struct stream {
    enum { UNKNOWN, SOCKET, DIRECTLY, POLLED } way;
    int fd;
};

// A pipe or terminal is opened anew, so that nobody else's descriptor becomes non-blocking.
static struct stream open_stream(int fd)
{
    char path[32];
    struct stat status = {0};
    fstat(fd, &status);
    if (S_ISSOCK(status.st_mode) || S_ISREG(status.st_mode))
        return (struct stream){S_ISREG(status.st_mode) ? DIRECTLY : SOCKET, fd};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool can_open = fd <= STDERR_FILENO && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    int opened = !can_open ? -1 : open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return opened < 0 ? (struct stream){POLLED, fd} : (struct stream){DIRECTLY, opened};
}

static ssize_t write_some(struct stream *stream, const char *bytes, size_t size)
{
    size_t some = size_least(size, PIPE_BUF); // a pipe that can be written has room for so many
    if (stream->way == SOCKET)
        return send(stream->fd, bytes, some, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (stream->way == DIRECTLY || is_writable(stream->fd, 0))
        return write(stream->fd, bytes, some);
    return errno = EAGAIN, -1;
}

struct patience {
    int64_t timeout; // milliseconds without progress
    int64_t whole;   // milliseconds from the first wait on
    int64_t end;     // when the whole must be over; INT64_MAX: nothing has waited yet, or there is no limit
    int64_t until;   // when there must be progress; 0: from now on
};

// False: the time is up, or the reader left.
static bool wait_for_room(struct patience *patience, int fd)
{
    int64_t now = clock_now();
    if (patience->end == INT64_MAX)
        patience->end = clock_after(now, patience->whole);
    if (!patience->until)
        patience->until = now + patience->timeout;
    patience->until = clock_sooner(patience->until, patience->end);
    int64_t left = patience->until - now;
    return left > 0 && (is_writable(fd, (int)clock_sooner(left, INT_MAX)) || errno == EINTR);
}

static size_t write_bytes(int fd, const char *bytes, size_t size, struct patience *patience)
{
    static struct stream standard[STDERR_FILENO + 1]; // they do not change
    struct stream own = {0}, *stream = fd >= 0 && fd <= STDERR_FILENO ? &standard[fd] : &own;
    if (stream->way == UNKNOWN)
        *stream = open_stream(fd);
    size_t written = 0;
    while (written < size) {
        ssize_t done = write_some(stream, bytes + written, size - written);
        if (done < 0 && errno != EINTR && errno != EAGAIN)
            break;
        if (done > 0) {
            written += (size_t)done;
            patience->until = 0;
        }
        bool must_wait = done <= 0 || patience->end != INT64_MAX; // also for the end of the whole
        if (written < size && must_wait && !wait_for_room(patience, fd))
            break;
    }
    return written;
}

size_t stream_write(int fd, const struct parts *parts, int64_t timeout, int64_t whole)
{
    struct parts left = *parts;
    struct patience patience = {.timeout = timeout, .whole = whole, .end = INT64_MAX};
    static char block[FILE_BLOCK]; // larger than some stacks; only the main thread is here
    size_t written = 0;
    ssize_t size;
    while ((size = parts_read(&left, block, sizeof block, NULL)) > 0) {
        size_t some = write_bytes(fd, block, (size_t)size, &patience);
        written += some;
        if (some < (size_t)size)
            break;
    }
    return written;
}

int stream_columns(int fd)
{
    struct winsize size = {0};
    if (!isatty(fd))
        return 0;
    ioctl(fd, TIOCGWINSZ, &size);
    return size.ws_col > 0 ? size.ws_col : DEFAULT_COLUMNS;
}
