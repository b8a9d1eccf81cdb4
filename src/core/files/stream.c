// SPDX-License-Identifier: Apache-2.0
// Standard streams, see stream.h.
#include "core/files/stream.h"

#include "core/base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008 // in linux/fs.h; musl lacks it
#endif
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid // glibc lacks it
#endif

enum { DEFAULT_COLUMNS = 80, DEFAULT_ROWS = 24 };
enum { WRITE_TIMEOUT = 5, STUCK = 100 }; // milliseconds for a terminal, see stream_write

// How to write to a stream without waiting.
enum stream_kind { STREAM_UNKNOWN, STREAM_SOCKET, STREAM_FILE, STREAM_NO_WAIT, STREAM_POLL };

static enum stream_kind kind_of(int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return STREAM_POLL;
    return S_ISSOCK(status.st_mode) ? STREAM_SOCKET : S_ISREG(status.st_mode) ? STREAM_FILE : STREAM_NO_WAIT;
}

static bool is_writable(int fd, int timeout)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    return poll(&wait, 1, timeout) > 0 && !(wait.revents & (POLLERR | POLLNVAL));
}

static void on_timer(int unused)
{
    (void)unused;
}

// Makes a timer that interrupts a system call of this thread. Without a handler, SIGURG would be ignored.
static bool have_timer(timer_t *timer)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
    struct sigaction action = {.sa_handler = on_timer};
    sigset_t urgent;
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    sigemptyset(&action.sa_mask);
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    return sigaction(SIGURG, &action, NULL) == 0 && pthread_sigmask(SIG_UNBLOCK, &urgent, NULL) == 0 &&
           timer_create(CLOCK_MONOTONIC, &event, timer) == 0;
}

// A terminal with room for a byte counts as writable, and a longer write waits until somebody reads. The timer repeats,
// because it may fire before the wait begins.
static ssize_t write_briefly(int fd, const char *bytes, size_t size)
{
    static _Thread_local enum { UNKNOWN, READY, MISSING } state;
    static _Thread_local timer_t timer;
    const struct timespec timeout = {.tv_nsec = WRITE_TIMEOUT * 1000000L};
    const struct itimerspec often = {.it_value = timeout, .it_interval = timeout}, never = {0};
    if (state == UNKNOWN)
        state = have_timer(&timer) ? READY : MISSING;
    if (state == MISSING)
        return write(fd, bytes, size);
    timer_settime(timer, 0, &often, NULL);
    ssize_t done = write(fd, bytes, size);
    int number = errno;
    timer_settime(timer, 0, &never, NULL);
    errno = number;
    return done;
}

// Writes to a pipe or device. If the kernel cannot do that without waiting, as for a terminal, poll tells whether there
// is room.
static ssize_t write_no_wait(int fd, const char *bytes, size_t size, enum stream_kind *kind)
{
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
    if (*kind == STREAM_NO_WAIT) {
        ssize_t done = syscall(SYS_pwritev2, fd, &part, 1L, -1L, -1L, RWF_NOWAIT);
        if (done >= 0 || errno == EAGAIN || errno == EINTR || errno == EPIPE)
            return done;
        *kind = STREAM_POLL;
    }
    if (is_writable(fd, 0))
        return write_briefly(fd, bytes, size);
    errno = EAGAIN;
    return -1;
}

// One write of at most PIPE_BUF bytes that does not wait: EAGAIN or EINTR if it would have to.
static ssize_t write_some(int fd, const char *bytes, size_t size, enum stream_kind *kind)
{
    size_t some = size < PIPE_BUF ? size : PIPE_BUF;
    if (*kind == STREAM_UNKNOWN)
        *kind = kind_of(fd);
    if (*kind == STREAM_SOCKET)
        return send(fd, bytes, some, MSG_DONTWAIT | MSG_NOSIGNAL);
    return *kind == STREAM_FILE ? write(fd, bytes, some) : write_no_wait(fd, bytes, some, kind);
}

size_t stream_write(int fd, const char *bytes, size_t size, int64_t timeout, int64_t whole)
{
    static enum stream_kind kinds[STDERR_FILENO + 1]; // of the standard streams, which do not change
    static int64_t
        stuck_until; // a write to a terminal that nobody reads takes WRITE_TIMEOUT: not for each of many lines
    enum stream_kind own = STREAM_UNKNOWN, *kind = fd >= 0 && fd <= STDERR_FILENO ? &kinds[fd] : &own;
    size_t written = 0;
    int64_t until = 0, end = INT64_MAX; // set at the first wait
    if (timeout == 0 && *kind == STREAM_POLL && clock_now() < stuck_until)
        return 0;
    while (written < size) {
        ssize_t done = write_some(fd, bytes + written, size - written, kind);
        if (done > 0)
            written += (size_t)done;
        if (done > 0 && end == INT64_MAX)
            continue;
        if (done < 0 && errno != EINTR && errno != EAGAIN)
            break;
        int64_t now = clock_now();
        end = end == INT64_MAX && whole < end - now ? now + whole : end;
        if (!until || done > 0)
            until = now + timeout < end ? now + timeout : end;
        int64_t left = until - now;
        if (left <= 0 || (!is_writable(fd, left > INT_MAX ? INT_MAX : (int)left) && errno != EINTR))
            break;
    }
    if (*kind == STREAM_POLL)
        stuck_until = written < size ? clock_now() + STUCK : 0;
    return written;
}

int stream_columns(int fd, int *rows)
{
    struct winsize size = {0};
    if (!isatty(fd))
        return 0;
    ioctl(fd, TIOCGWINSZ, &size);
    *rows = size.ws_row > 0 ? size.ws_row : DEFAULT_ROWS;
    return size.ws_col > 0 ? size.ws_col : DEFAULT_COLUMNS;
}
