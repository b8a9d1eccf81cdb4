// SPDX-License-Identifier: Apache-2.0
// Files and streams of the runner itself, see file.h.
#include "core/file.h"

#include "core/cleanup.h"
#include "core/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008 // of linux/fs.h; musl has it not
#endif
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid // glibc has it not
#endif

enum { READ_BLOCK = 64 * 1024, PARTS_AT_ONCE = 512, TAIL_BLOCK = 4096, USUAL_COLUMNS = 80, USUAL_ROWS = 24 };
enum { PATIENCE = 5, STUCK = 100 }; // milliseconds with a terminal, see file_write_within

static int fail_interrupted(const char *path, struct error *error)
{
    bool cancelled = interrupt_reason() == INTERRUPT_CANCELLED;
    return error_set(error, cancelled ? "cancelled" : "timeout", 0, "reading %s was %s", path,
                     cancelled ? "cancelled by a signal" : "cut short by the job's deadline");
}

// Waits until fd can be read, or hung up. -1 with *error when the job must stop first.
static int wait_readable(int fd, const char *path, struct error *error)
{
    struct pollfd waits[] = {{.fd = fd, .events = POLLIN}, {.fd = interrupt_fd(), .events = POLLIN}};
    for (;;) {
        if (interrupt_reason() != INTERRUPT_NONE)
            return fail_interrupted(path, error);
        int ready = poll(waits, 2, interrupt_poll_timeout(-1));
        if (ready < 0 && errno != EINTR)
            return error_system(error, errno, "cannot wait for %s", path);
        if (ready > 0 && waits[0].revents)
            return 0;
    }
}

static int fail_too_large(const char *path, size_t limit, struct error *error)
{
    return error_set(error, "too_large", 0, "%s is larger than %zu bytes", path, limit);
}

static int64_t read_began;

static int read_all(int fd, const char *path, size_t limit, struct buffer *out, struct error *error)
{
    for (;;) {
        size_t room = limit - out->size < READ_BLOCK ? limit - out->size + 1 : READ_BLOCK;
        if (out->size == out->capacity && buffer_reserve(out, room) < 0)
            return error_set(error, "out_of_memory", 0, "no memory is left to read %s", path);
        if (wait_readable(fd, path, error) < 0)
            return -1;
        size_t space = out->capacity - out->size;
        if (space > limit - out->size)
            space = limit - out->size + 1;
        if (out->size == 0)
            read_began = clock_now();
        ssize_t got = read(fd, out->data + out->size, space);
        if (got == 0)
            return 0;
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return error_system(error, errno, "cannot read %s", path);
        out->size += (size_t)got;
        if (out->size > limit)
            return fail_too_large(path, limit, error);
    }
}

static int read_named(const char *path, size_t limit, bool regular, struct buffer *out, struct error *error)
{
    // Not blocking, so that a FIFO without a writer is waited for in poll, where a signal ends the wait.
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_system(error, errno, "cannot open %s", path);
    struct stat status;
    bool is_regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (regular && !is_regular)
        return error_set(error, "not_a_file", 0, "cannot read %s: it is not a regular file", path);
    if (is_regular) {
        if ((uintmax_t)status.st_size > limit)
            return fail_too_large(path, limit, error);
        if (buffer_reserve(out, (size_t)status.st_size + 1) < 0)
            return error_set(error, "out_of_memory", 0, "no memory is left to read %s", path);
    }
    return read_all(fd, path, limit, out, error);
}

int64_t file_read_began(void)
{
    return read_began;
}

int file_read(const char *path, size_t limit, struct buffer *out, struct error *error)
{
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", limit, out, error);
    return read_named(path, limit, false, out, error);
}

int file_read_regular(const char *path, size_t limit, struct buffer *out, struct error *error)
{
    return read_named(path, limit, true, out, error);
}

// The length of the file up to and with its last newline.
static off_t whole_lines(int fd, off_t size)
{
    char block[TAIL_BLOCK];
    while (size > 0) {
        off_t start = size > TAIL_BLOCK ? size - TAIL_BLOCK : 0;
        ssize_t got = pread(fd, block, (size_t)(size - start), start);
        if (got <= 0)
            return got < 0 ? -1 : start;
        const char *newline = memrchr(block, '\n', (size_t)got);
        if (newline)
            return start + (newline - block) + 1;
        size = start;
    }
    return 0;
}

// A lock of fcntl(2): it is no child's.
static struct flock whole_file(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

bool file_is_open(const char *path)
{
    struct flock lock = whole_file();
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int file_open_log(const char *path, bool empty, struct error *error)
{
    cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
    struct stat status;
    if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
        return error_set(error, "not_a_file", 0, "cannot append to %s: it is not a regular file", path);
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_system(error, errno, "cannot open %s", path);
    if (!S_ISREG(status.st_mode))
        return error_set(error, "not_a_file", 0, "cannot append to %s: it is not a regular file", path);
    off_t keep = empty ? 0 : whole_lines(fd, status.st_size);
    if (keep < 0 || (keep < status.st_size && ftruncate(fd, keep) < 0))
        return error_system(error, errno, "cannot cut %s", path);
    struct flock lock = whole_file();
    fcntl(fd, F_SETLK, &lock); // some file systems have no locks
    return steal_fd(&fd);
}

// The next parts to write, the first of them from offset on. Returns how many.
static int next_parts(const struct iovec *parts, size_t count, size_t offset, struct iovec *next)
{
    size_t some = count < PARTS_AT_ONCE ? count : PARTS_AT_ONCE;
    memcpy(next, parts, some * sizeof *parts);
    next->iov_base = (char *)next->iov_base + offset;
    next->iov_len -= offset;
    return (int)some;
}

int file_write_parts(int fd, const struct iovec *parts, size_t count, struct error *error)
{
    struct iovec next[PARTS_AT_ONCE];
    size_t offset = 0; // what is written of the first part
    while (count) {
        ssize_t done = writev(fd, next, next_parts(parts, count, offset, next));
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return error_system(error, errno, "cannot write");
        offset += (size_t)done;
        for (; count && offset >= parts->iov_len; parts++, count--)
            offset -= parts->iov_len;
    }
    return 0;
}

// How one asks for a write that does not wait.
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

static void on_impatience(int unused)
{
    (void)unused;
}

// A timer that cuts short what this thread waits for in the kernel. SIGURG is ignored where nothing handles it.
static bool have_timer(timer_t *timer)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
    struct sigaction action = {.sa_handler = on_impatience};
    sigset_t urgent;
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    sigemptyset(&action.sa_mask);
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    return sigaction(SIGURG, &action, NULL) == 0 && pthread_sigmask(SIG_UNBLOCK, &urgent, NULL) == 0 &&
           timer_create(CLOCK_MONOTONIC, &event, timer) == 0;
}

// A terminal that has room for a byte counts as writable, and a longer write waits until somebody reads. The timer
// comes again and again, for it may come before the wait begins.
static ssize_t write_impatiently(int fd, const char *bytes, size_t size)
{
    static _Thread_local enum { UNKNOWN, READY, MISSING } state;
    static _Thread_local timer_t timer;
    const struct timespec patience = {.tv_nsec = PATIENCE * 1000000L};
    const struct itimerspec often = {.it_value = patience, .it_interval = patience}, never = {0};
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

// A pipe, or a device. Where the kernel does not know how, as for a terminal, poll tells what has room for some bytes.
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
        return write_impatiently(fd, bytes, size);
    errno = EAGAIN;
    return -1;
}

// One write that does not wait, of at most PIPE_BUF bytes; EAGAIN or EINTR where it would.
static ssize_t write_some(int fd, const char *bytes, size_t size, enum stream_kind *kind)
{
    size_t some = size < PIPE_BUF ? size : PIPE_BUF;
    if (*kind == STREAM_UNKNOWN)
        *kind = kind_of(fd);
    if (*kind == STREAM_SOCKET)
        return send(fd, bytes, some, MSG_DONTWAIT | MSG_NOSIGNAL);
    return *kind == STREAM_FILE ? write(fd, bytes, some) : write_no_wait(fd, bytes, some, kind);
}

size_t file_write_within(int fd, const char *bytes, size_t size, int64_t timeout, int64_t whole)
{
    static enum stream_kind kinds[STDERR_FILENO + 1]; // what a standard stream goes to stays what it is
    static int64_t stuck_until; // a try at a terminal that nobody reads costs PATIENCE: not at each of many lines
    enum stream_kind own = STREAM_UNKNOWN, *kind = fd >= 0 && fd <= STDERR_FILENO ? &kinds[fd] : &own;
    size_t written = 0;
    int64_t until = 0, end = INT64_MAX; // nothing has made the writer wait
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

// Makes a directory. One that is there already is as good; else errno says why there is none.
static bool have_directory(const char *path)
{
    struct stat status;
    if (mkdir(path, 0755) == 0)
        return true;
    int number = errno;
    bool have = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    errno = number;
    return have;
}

// Directories above that exist may be unwritable or on a read-only system: only the last one's failure counts.
static void make_above(char *path)
{
    for (char *at = path + 1; *path && *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        mkdir(path, 0755);
        *at = '/';
    }
}

int file_make_directory(const char *path, struct error *error)
{
    if (have_directory(path))
        return 0;
    cleanup_free char *copy = strdup(path);
    if (!copy)
        return error_set(error, "out_of_memory", 0, "no memory is left");
    make_above(copy);
    return have_directory(path) ? 0 : error_system(error, errno, "cannot create the directory %s", path);
}

char *file_make_temporary_directory(const char *above, struct error *error)
{
    cleanup_free char *path = NULL;
    if (asprintf(&path, "%s/cynode-sba-XXXXXX", above) < 0) {
        path = NULL;
        error_set(error, "out_of_memory", 0, "no memory is left");
    } else if (mkdtemp(path)) {
        return steal_pointer(&path);
    } else {
        error_system(error, errno, "cannot create a directory in %s", above);
    }
    return NULL;
}

int file_remove(const char *path, struct error *error)
{
    return unlink(path) == 0 || errno == ENOENT ? 0 : error_system(error, errno, "cannot remove %s", path);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    remove(path); // the directory that holds it says whether it went
    return 0;
}

int file_remove_directory(const char *path, struct error *error)
{
    enum { DESCRIPTORS = 16 };
    nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    return error_set(error, "io_error", 0, "cannot remove the directory %s and all that is in it", path);
}

int file_terminal_columns(int fd, int *rows)
{
    struct winsize size = {0};
    if (!isatty(fd))
        return 0;
    ioctl(fd, TIOCGWINSZ, &size);
    *rows = size.ws_row > 0 ? size.ws_row : USUAL_ROWS;
    return size.ws_col > 0 ? size.ws_col : USUAL_COLUMNS;
}

void file_forget_variable(const char *name)
{
    extern char **environ;
    size_t size = strlen(name);
    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, name, size) == 0 && (*entry)[size] == '=')
            explicit_bzero(*entry + size + 1, strlen(*entry + size + 1));
    unsetenv(name);
}
