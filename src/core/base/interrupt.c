// SPDX-License-Identifier: Apache-2.0
// The deadline and the cancel flag, see interrupt.h.
#include "core/base/interrupt.h"
#include "core/base/io.h"
#include "core/base/threads.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    UNSTOPPABLE = 1000,    // ms after a signal, from when on the next one ends the program
    PARENT_INTERVAL = 500, // ms between two looks at who our parent is
};

static volatile sig_atomic_t cancel_signal; // the first one, but SIGTERM wins over the others
static volatile sig_atomic_t cancelled;     // whether one came since it was cleared
static volatile int64_t cancelled_at;       // when the first one since then came
static int64_t deadline = INT64_MAX;
static pid_t runner;
static sigset_t cancels; // the signals that cancel
static bool disarmed;
static bool in_session;
static int event_fd = -1;
static pid_t started_by;
static pid_t parent; // whose end cancels; 0: none
static int parent_fd = -1;
static void (*on_stop)(void);
static void (*on_cancel)(void);

// Whether a handler may act here. A thread of a library passes its signals on to the main thread, which has the PID as
// its TID. A child that shares our memory until it executes a program is none of ours: the signal is for it.
static bool is_main_thread(int number)
{
    if (getpid() != runner) {
        signal(number, SIG_DFL);
        kill(getpid(), number);
        return false;
    }
    if (syscall(SYS_gettid) == runner)
        return true;
    syscall(SYS_tgkill, runner, runner, number);
    return false;
}

static void cancel(int number)
{
    const uint64_t one = 1;
    // A prompt or a script that does not stop, as in a coroutine. (A job sets on_cancel, and is ended by ending.h.)
    if (cancelled && !on_cancel && clock_now() - cancelled_at > UNSTOPPABLE)
        _exit(128 + number);
    if (!cancelled)
        cancelled_at = clock_now();
    if (!cancel_signal || number == SIGTERM)
        cancel_signal = number;
    cancelled = 1;
    io_write(event_fd, &one, sizeof one, IO_HERE);
    if (on_cancel)
        on_cancel();
}

// SIGALRM comes at the deadline.
static void on_signal(int number)
{
    int saved = errno;
    bool is_ours = is_main_thread(number);
    if (is_ours && number != SIGALRM)
        cancel(number);
    if (is_ours && on_stop)
        on_stop();
    errno = saved;
}

// A signal that was ignored when the program started stays so, as with nohup. All are blocked meanwhile: one call for
// each signal then finds that out, and none of them gets lost.
static void handle_cancels(const struct sigaction *action)
{
    // Beside those of a crash, these are no cancels, though some of them end a process that does not handle them.
    static const int exempt[] = {
        SIGALRM,                                                       // ours: the deadline
        SIGPIPE, SIGXFSZ,                                              // ignored: the write fails instead
        SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH, // end no process
    };
    struct sigaction before;
    sigset_t others;
    threads_crashes(&others); // ending.h
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++)
        sigaddset(&others, exempt[i]);
    sigemptyset(&cancels);
    for (int number = 1; number <= SIGRTMAX; number++) {
        if (sigismember(&others, number) == 1 || sigaction(number, action, &before) < 0)
            continue; // SIGKILL, SIGSTOP and those of the C library cannot be handled
        if (before.sa_handler == SIG_IGN)
            sigaction(number, &before, NULL);
        else
            sigaddset(&cancels, number);
    }
}

bool interrupt_install(void)
{
    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd < 0)
        fprintf(stderr, "cynode-sba: cannot start: no event descriptor: %s\n", strerror(errno));
    runner = getpid();
    started_by = getppid();
    // No SA_RESTART: a blocking read of the job must end with EINTR.
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t all, before;
    sigemptyset(&action.sa_mask);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    handle_cancels(&action);
    sigaction(SIGALRM, &action, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    sigset_t ours = cancels;
    sigaddset(&ours, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &ours, NULL); // our parent may have blocked some, or the image before (ending.h)
    return event_fd >= 0;                  // the handlers stand in any case: ending_begin may raise a signal
}

// Waits check the clock themselves. The alarm stops Lua code that does not wait.
static void set_alarm(int64_t milliseconds)
{
    const int64_t longest = 100000000000; // three years; a longer deadline needs no alarm
    if (milliseconds > longest)
        milliseconds = 0;
    else
        milliseconds++; // it must not come before the deadline, and 0 would mean no alarm
    struct itimerval alarm = {.it_value = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000}};
    setitimer(ITIMER_REAL, &alarm, NULL);
}

void interrupt_set_deadline(int64_t milliseconds)
{
    deadline = clock_after(clock_now(), milliseconds);
    set_alarm(milliseconds);
}

int64_t interrupt_remaining(void)
{
    if (disarmed || deadline == INT64_MAX)
        return INT64_MAX;
    int64_t left = deadline - clock_now();
    return left > 0 ? left : 0;
}

enum interrupt_reason interrupt_reason(void)
{
    if (disarmed)
        return INTERRUPT_NONE;
    if (cancelled)
        return INTERRUPT_CANCELLED;
    return interrupt_remaining() == 0 ? INTERRUPT_TIMEOUT : INTERRUPT_NONE;
}

const char *interrupt_code(enum interrupt_reason reason)
{
    return reason == INTERRUPT_CANCELLED ? "cancelled" : "timeout";
}

const char *interrupt_message(enum interrupt_reason reason)
{
    return reason == INTERRUPT_CANCELLED ? "the job was cancelled by a signal" : "the job's time was up";
}

int interrupt_check(struct error *error)
{
    enum interrupt_reason reason = interrupt_reason();
    if (reason == INTERRUPT_NONE)
        return 0;
    return error_set(error, interrupt_code(reason), 0, "%s", interrupt_message(reason));
}

int interrupt_signal(void)
{
    return cancel_signal;
}

int64_t interrupt_signalled_at(void)
{
    return cancelled_at;
}

int interrupt_fd(void)
{
    return disarmed ? -1 : event_fd;
}

int interrupt_poll_timeout(int64_t wished)
{
    int64_t left = clock_sooner(interrupt_remaining(), wished < 0 ? INT64_MAX : wished);
    return left == INT64_MAX ? -1 : (int)clock_sooner(left, INT_MAX);
}

int interrupt_sleep(int64_t milliseconds, struct error *error)
{
    for (int64_t end = clock_now() + milliseconds, left; (left = end - clock_now()) > 0;) {
        if (interrupt_check(error) < 0)
            return -1;
        struct pollfd cancel = {.fd = interrupt_fd(), .events = POLLIN};
        poll(&cancel, 1, interrupt_poll_timeout(left));
    }
    return interrupt_check(error);
}

void interrupt_begin_session(void)
{
    in_session = true;
}

bool interrupt_in_session(void)
{
    return in_session;
}

static void clear(void)
{
    io_forget(event_fd);
    cancel_signal = cancelled = 0;
}

bool interrupt_clear(void)
{
    sigset_t before;
    sigprocmask(SIG_BLOCK, &cancels, &before);
    bool cleared = cancel_signal == SIGINT;
    if (cleared)
        clear();
    sigprocmask(SIG_SETMASK, &before, NULL);
    return cleared;
}

void interrupt_ignore_others(void)
{
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&cancels, number) == 1 && number != SIGTERM && number != SIGINT)
            signal(number, SIG_IGN);
    if (cancel_signal != SIGTERM && cancel_signal != SIGINT)
        clear();
}

int interrupt_watch_parent(int64_t expected, struct error *error)
{
    if (started_by == 0)
        return error_set(error, "unsupported", 0,
                         "the process that started the runner is outside its PID namespace, so its end cannot be seen");
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL); // also if it was ignored
    int64_t wanted = expected ? expected : started_by;
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)wanted, 0); // Linux before 5.3 has none
    if (getppid() != wanted) {                               // what the descriptor is may be another process
        if (fd >= 0)
            close(fd);
        raise(SIGTERM);
        return error_set(error, "gone", 0, "the runner's parent, process %jd, is gone, or did not start it",
                         (intmax_t)wanted);
    }
    parent = (pid_t)wanted;
    parent_fd = fd;
    return 0;
}

void interrupt_wait_for(int fd)
{
    struct pollfd ends[] = {{fd, POLLIN, 0}, {parent_fd, POLLIN, 0}};
    do {
        poll(ends, 2, parent && parent_fd < 0 ? PARENT_INTERVAL : -1);
        if (parent && (ends[1].revents || getppid() != parent)) {
            parent = 0;
            ends[1].fd = -1;
            syscall(SYS_tgkill, runner, runner, SIGTERM);
        }
    } while (!ends[0].revents);
}

void interrupt_on_stop(void (*call)(void))
{
    on_stop = call;
}

void interrupt_on_signal(void (*call)(void))
{
    on_cancel = call;
}

void interrupt_disarm(void)
{
    disarmed = true;
}

bool interrupt_hold(bool held)
{
    bool before = disarmed;
    disarmed = held;
    if (on_stop && interrupt_reason() != INTERRUPT_NONE)
        on_stop();
    return before;
}

void interrupt_rearm(int64_t milliseconds)
{
    cancelled = 0;
    io_forget(event_fd);
    disarmed = false;
    interrupt_set_deadline(milliseconds);
}
