// SPDX-License-Identifier: Apache-2.0
// The deadline and the cancel flag, see interrupt.h.
#include "core/interrupt.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t cancel_signal; // the first one, but SIGTERM goes before SIGINT
static volatile sig_atomic_t cancelled;     // whether one came that counts
static volatile int64_t cancelled_at;       // when the first one came
static int64_t deadline = INT64_MAX;
static bool lifted;
static bool in_session;
static unsigned forgiven_count;
static int event_fd = -1;
static void (*on_stop)(void);
static void (*on_cancel)(void);

// The main thread's id is the process's. A thread of a library passes on what it was given.
static bool is_main_thread(int number)
{
    if (syscall(SYS_gettid) == getpid())
        return true;
    syscall(SYS_tgkill, getpid(), getpid(), number);
    return false;
}

// SIGALRM is the deadline's.
static void on_signal(int number)
{
    int saved = errno;
    uint64_t one = 1;
    if (is_main_thread(number)) {
        if (number != SIGALRM) {
            if (!cancel_signal)
                cancelled_at = interrupt_now();
            if (!cancel_signal || number == SIGTERM)
                cancel_signal = number;
            cancelled = 1;
            ssize_t ignored = write(event_fd, &one, sizeof one);
            (void)ignored;
            if (on_cancel)
                on_cancel();
        }
        if (on_stop)
            on_stop();
    }
    errno = saved;
}

void interrupt_install(void)
{
    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd < 0) {
        fprintf(stderr, "cynode-sba: cannot start: no event descriptor: %s\n", strerror(errno));
        exit(3);
    }
    // No SA_RESTART: a blocking read of the job must end with EINTR when the node gives up.
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
}

int64_t interrupt_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t interrupt_wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Writes a number with so many digits and the character after it; returns where the next begins. printf takes ten times
// as long, and every line of a log has a time.
static char *put_number(char *to, int number, int digits, char after)
{
    for (int i = digits - 1; i >= 0; i--, number /= 10)
        to[i] = (char)('0' + number % 10);
    to[digits] = after;
    return to + digits + 1;
}

// Writes the date of so many days since 1970-01-01, in years that begin in March: so a leap day is the last of its
// year. gmtime takes a lock, which the watchdog must not wait for.
static char *put_date(char *text, int days)
{
    enum { DAYS_OF_400_YEARS = 146097, DAYS_FROM_MARCH_OF_YEAR_0 = 719468 };
    days += DAYS_FROM_MARCH_OF_YEAR_0;
    int era = days / DAYS_OF_400_YEARS, of_era = days % DAYS_OF_400_YEARS;
    int year = (of_era - of_era / 1460 + of_era / 36524 - of_era / (DAYS_OF_400_YEARS - 1)) / 365;
    int day = of_era - (365 * year + year / 4 - year / 100);
    int month = (5 * day + 2) / 153; // 0 is March
    text = put_number(text, year + era * 400 + (month >= 10), 4, '-');
    text = put_number(text, month < 10 ? month + 3 : month - 9, 2, '-');
    return put_number(text, day - (153 * month + 2) / 5 + 1, 2, 'T');
}

void interrupt_timestamp(int64_t wall, char text[INTERRUPT_TIMESTAMP_SIZE])
{
    int64_t seconds = wall / 1000;
    int of_day = (int)(seconds % 86400);
    text = put_date(text, (int)(seconds / 86400));
    text = put_number(text, of_day / 3600, 2, ':');
    text = put_number(text, of_day / 60 % 60, 2, ':');
    text = put_number(text, of_day % 60, 2, '.');
    *put_number(text, (int)(wall % 1000), 3, 'Z') = '\0';
}

// Waits look at the clock themselves; the alarm is for what does not wait.
static void set_alarm(int64_t milliseconds)
{
    const int64_t longest = 100000000000; // three years; what is longer than that needs no alarm
    if (milliseconds > longest)
        milliseconds = 0;
    else
        milliseconds++; // for it must not come before the deadline, and 0 would be no alarm
    struct itimerval alarm = {.it_value = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000}};
    setitimer(ITIMER_REAL, &alarm, NULL);
}

void interrupt_set_deadline(int64_t milliseconds)
{
    int64_t now = interrupt_now();
    deadline = milliseconds > INT64_MAX - now ? INT64_MAX : now + milliseconds;
    set_alarm(milliseconds);
}

int64_t interrupt_remaining(void)
{
    if (lifted || deadline == INT64_MAX)
        return INT64_MAX;
    int64_t left = deadline - interrupt_now();
    return left > 0 ? left : 0;
}

enum interrupt_reason interrupt_reason(void)
{
    if (lifted)
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
    return lifted ? -1 : event_fd;
}

int interrupt_poll_timeout(int64_t wished)
{
    int64_t left = interrupt_remaining();
    if (wished >= 0 && wished < left)
        left = wished;
    if (left == INT64_MAX)
        return -1;
    return left > INT_MAX ? INT_MAX : (int)left;
}

int interrupt_sleep(int64_t milliseconds, struct error *error)
{
    for (int64_t end = interrupt_now() + milliseconds, left; (left = end - interrupt_now()) > 0;) {
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

bool interrupt_forgive(void)
{
    sigset_t cancels, before;
    sigemptyset(&cancels);
    sigaddset(&cancels, SIGINT);
    sigaddset(&cancels, SIGTERM);
    sigprocmask(SIG_BLOCK, &cancels, &before);
    bool forgiven = cancel_signal == SIGINT;
    if (forgiven) {
        uint64_t count;
        ssize_t ignored = read(event_fd, &count, sizeof count);
        (void)ignored;
        cancel_signal = cancelled = 0;
        forgiven_count++;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return forgiven;
}

unsigned interrupt_forgiven(void)
{
    return forgiven_count;
}

void interrupt_on_stop(void (*call)(void))
{
    on_stop = call;
}

void interrupt_on_signal(void (*call)(void))
{
    on_cancel = call;
}

void interrupt_lift(void)
{
    lifted = true;
}

void interrupt_grant(int64_t milliseconds)
{
    uint64_t count;
    cancelled = 0;
    ssize_t ignored = read(event_fd, &count, sizeof count);
    (void)ignored;
    lifted = false;
    interrupt_set_deadline(milliseconds);
}
