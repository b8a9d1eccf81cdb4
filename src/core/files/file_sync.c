// SPDX-License-Identifier: Apache-2.0
// fsync by a thread, see file_sync.h.
#include "core/files/file_sync.h"

#include "core/base/clock.h"
#include "core/base/io.h"
#include "core/base/threads.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

// `begun` and `ended` are descriptors that count. `file` and `failure` are the thread's between the two.
static int begun = -1, ended = -1;
static int file, failure;
static bool goes_on;

static int sync_now(int fd)
{
    int outcome;
    do
        outcome = fsync(fd);
    while (outcome < 0 && errno == EINTR);
    return outcome < 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
}

static void *serve(void *unused)
{
    uint64_t count = 1;
    (void)unused;
    while (read(begun, &count, sizeof count) > 0 || errno == EINTR) {
        failure = sync_now(file);
        close(file);
        io_write(ended, &(uint64_t){1}, sizeof count, IO_HERE);
    }
    return NULL;
}

bool file_sync_prepare(void)
{
    static enum { UNTRIED, RUNS, FAILED } thread;
    if (thread == UNTRIED) {
        begun = eventfd(0, EFD_CLOEXEC);
        ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        thread = begun >= 0 && ended >= 0 && threads_start(serve, NULL, NULL) == 0 ? RUNS : FAILED;
    }
    return thread == RUNS;
}

int file_sync_begin(int fd)
{
    if (goes_on)
        return errno = EBUSY, -1;
    int copy = file_sync_prepare() ? io_duplicate(fd) : -1;
    if (copy < 0) {
        failure = sync_now(fd);
        return 0;
    }
    file = copy;
    goes_on = write(begun, &(uint64_t){1}, sizeof(uint64_t)) > 0;
    return goes_on ? 0 : -1;
}

int file_sync_wait(int64_t until)
{
    uint64_t count;
    while (goes_on) {
        int64_t left = until - clock_now();
        struct pollfd end = {.fd = ended, .events = POLLIN};
        poll(&end, 1, left > 0 ? (int)clock_sooner(left, 1000) : 0);
        goes_on = read(ended, &count, sizeof count) < 0;
        if (goes_on && left <= 0)
            return errno = ETIMEDOUT, -1;
    }
    return failure ? (errno = failure, -1) : 0;
}
