// SPDX-License-Identifier: Apache-2.0
// The end of a job that cannot end by itself, see ending.h.
#include "core/base/ending.h"

#include "core/base/interrupt.h"
#include "core/base/terminal_mode.h"
#include "core/base/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    PAST_DEADLINE = 2500,
    PAST_SIGNAL = 5000,
    BEGUN_PAST_DEADLINE = 4500,
    BEGUN_PAST_SIGNAL = 7500,
    REPORTING = 35000,            // ms for what follows the result
    REPORTING_PAST_SIGNAL = 7000, // the same after a signal
    LAST = 10000,                 // ms for the new image
    STACK = 64 << 10,
    PREFIX = 80, // bytes of SBA_END before the information
    UNWRITABLE = 3,
};

static const int64_t never = INT64_MAX;
static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP, SIGSYS};

static char **arguments, **variables; // for the new image; the last variable is SBA_END
static size_t variable_count;
static const char *program;
static char *_Atomic kept; // SBA_END, behind PREFIX the information
static atomic_int journal_fd = -1;
static int timer_fd = -1;
static pid_t runner;
static struct ending before;
static _Atomic int64_t deadline = INT64_MAX, signalled_at = INT64_MAX, written_at = INT64_MAX, patience = REPORTING;
static atomic_int written_status;
static atomic_bool watching, begun, crashed;

static int64_t later(int64_t time, int64_t by)
{
    return time < never - by ? time + by : never;
}

// When the program must be over.
static int64_t due(void)
{
    int64_t written = written_at, signalled = signalled_at;
    if (!watching)
        return never;
    if (written != never && signalled == never)
        return written + patience;
    if (written != never)
        return (signalled > written ? signalled : written) + REPORTING_PAST_SIGNAL;
    int64_t past_deadline = later(deadline, begun ? BEGUN_PAST_DEADLINE : PAST_DEADLINE);
    int64_t past_signal = later(signalled, begun ? BEGUN_PAST_SIGNAL : PAST_SIGNAL);
    return past_deadline < past_signal ? past_deadline : past_signal;
}

// Safe in a signal handler, and if a handler interrupts it.
static void set_timer(void)
{
    for (int64_t at = due(); timer_fd >= 0; at = due()) {
        struct itimerspec timer = {.it_value = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000 + 1}};
        if (at == never)
            timer.it_value = (struct timespec){0}; // none
        timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
        if (at == due())
            return;
    }
}

static void signalled(void)
{
    int64_t none = never;
    atomic_compare_exchange_strong(&signalled_at, &none, clock_now());
    set_timer();
}

static const char *overdue(void)
{
    int number = interrupt_signal();
    return number == SIGTERM ? "SIGTERM" : number ? "SIGINT" : "timeout";
}

// Nothing here may allocate memory or wait for a lock: the main thread may hold any.
static _Noreturn void end(const char *reason)
{
    char *variable = kept, head[PREFIX];
    terminal_mode_restore(); // so that the new image finds it
    if (written_at != never)
        _exit(written_status);
    if (journal_fd >= 0)
        fcntl(journal_fd, F_SETFD, 0);
    int size = snprintf(head, sizeof head, "SBA_END=%d %s %d ", (int)getpid(), reason, journal_fd);
    variables[variable_count] = memcpy(variable + PREFIX - size, head, (size_t)size);
    execve(program, arguments, variables);
    _exit(UNWRITABLE);
}

static void *watch(void *unused)
{
    uint64_t times;
    (void)unused;
    for (;;) {
        ssize_t ignored = read(timer_fd, &times, sizeof times);
        (void)ignored;
        if (crashed)
            end("crash");
        if (clock_now() >= due())
            end(overdue());
    }
    return NULL;
}

// A handler runs in any thread, and in a child that shares our memory until it executes a program.
static void on_crash(int number, siginfo_t *info, void *unused)
{
    (void)unused, (void)info;
    const struct itimerspec now = {.it_value = {.tv_nsec = 1}};
#ifdef __SANITIZE_ADDRESS__
    bool own = info->si_code <= 0; // the sanitizer, which comes next, reports its own
#else
    bool own = true;
#endif
    if (!watching || getpid() != runner || !own) {
        signal(number, SIG_DFL);
        return;
    }
    if (syscall(SYS_gettid) == runner)
        end("crash");
    crashed = true;
    timerfd_settime(timer_fd, 0, &now, NULL);
    for (;;)
        pause();
}

static void catch_crashes(void)
{
    static char stack[STACK];
    const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaltstack(&alternative, NULL);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        sigaction(crashes[i], &action, NULL);
}

static int start_watching(struct error *error)
{
    watching = true; // also without the thread, for crashes and memory
    if (timer_fd < 0) {
        timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        int outcome = timer_fd < 0 ? errno : threads_start(watch, NULL);
        if (outcome)
            return error_system(error, outcome, "cannot watch over the end of the job");
    }
    if (interrupt_signal()) // one came before
        signalled();
    set_timer();
    return 0;
}

// The environment, with room for SBA_END.
static int copy_environment(void)
{
    extern char **environ;
    while (environ[variable_count])
        variable_count++;
    variables = calloc(variable_count + 2, sizeof *variables);
    if (variables)
        memcpy(variables, environ, variable_count * sizeof *variables);
    return variables ? 0 : -1;
}

int ending_start(struct error *error)
{
    const char *path = (const char *)getauxval(AT_EXECFN);
    interrupt_on_signal(signalled); // a job runs, whatever fails here: a second signal must not end the program
    program = access("/proc/self/exe", X_OK) == 0 ? "/proc/self/exe" : path && access(path, X_OK) == 0 ? path : NULL;
    if (!program)
        return error_system(error, errno, "cannot execute this program again");
    runner = getpid();
    if (!kept || (!variables && copy_environment() < 0))
        return error_set(error, "out_of_memory", 0, "no memory is left");
    catch_crashes();
    return start_watching(error);
}

int ending_last(int status, struct error *error)
{
    interrupt_on_signal(signalled);
    patience = LAST;
    ending_written(status);
    return start_watching(error);
}

void ending_stop(void)
{
    watching = begun = false;
    set_timer();
    deadline = signalled_at = written_at = never;
}

int ending_keep(const char *information, int journal, struct error *error)
{
    size_t size = strlen(information) + 1;
    char *text = malloc(PREFIX + size), *old = kept;
    if (!text)
        return error_set(error, "out_of_memory", 0, "no memory is left");
    memcpy(text + PREFIX, information, size);
    memcpy(text, &old, sizeof old); // it may be in use: it is kept too
    kept = text;
    journal_fd = journal;
    return 0;
}

void ending_deadline(int64_t at)
{
    deadline = at;
    set_timer();
}

void ending_begun(void)
{
    begun = true;
    set_timer();
}

void ending_written(int status)
{
    int64_t none = never;
    written_status = status;
    atomic_compare_exchange_strong(&written_at, &none, clock_now());
    set_timer();
}

void ending_memory(void)
{
    if (watching && variables)
        end("memory");
}

const struct ending *ending_inherited(void)
{
    return &before;
}

void ending_begin(char **argv)
{
    const char *given = getenv("SBA_END");
    sigset_t none;
    int pid = 0, size = 0;
    arguments = argv;
    sigemptyset(&none);
    if (given && sscanf(given, "%d %15s %d %n", &pid, before.reason, &before.journal, &size) == 3 && pid == getpid()) {
        if (before.journal < 0 || fcntl(before.journal, F_SETFD, FD_CLOEXEC) < 0)
            before.journal = -1;
        before.information = strdup(given + size);
        if (strncmp(before.reason, "SIG", 3) == 0)
            raise(strcmp(before.reason, "SIGINT") == 0 ? SIGINT : SIGTERM);
        sigprocmask(SIG_SETMASK, &none, NULL); // of the thread that executed us
    } else {
        before.reason[0] = '\0';
    }
    unsetenv("SBA_END");
}
