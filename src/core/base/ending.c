// SPDX-License-Identifier: Apache-2.0
// The end of a job that cannot end by itself, see ending.h.
#include "core/base/ending.h"

#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/base/io.h"
#include "core/base/spool.h"
#include "core/base/terminal_mode.h"
#include "core/base/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    STACK = 64 << 10,
    VARIABLE = 128, // bytes of SBA_END
    TRIES = 20,     // of an exec,
    PAUSE = 50,     // and ms between two
};

#define NEVER INT64_MAX

// What the main thread does, and how long that may take: ms past the deadline, past a signal, and past its own begin.
// In WRITTEN and LAST a status is known, and the program exits with it; before, it executes itself.
enum phase { IDLE, WORKING, ENDING, WRITTEN, LAST };

static const struct {
    int64_t past_deadline, past_signal, past_begin;
} patience[] = {
    [IDLE] = {NEVER, NEVER, NEVER},   // no job runs
    [WORKING] = {2500, 5000, NEVER},  // until ending_begun
    [ENDING] = {4500, 7500, NEVER},   // until ending_written
    [WRITTEN] = {NEVER, 7000, 35000}, // what follows the result; a signal counts from its begin at the earliest
    [LAST] = {NEVER, NEVER, 10000},   // the new image
};

static char **arguments, **variables; // for the new image; the last variable is SBA_END
static size_t variable_count;
static const char *program;
static char variable[VARIABLE];
static pid_t runner, timer_thread;
static int timer_fd = -1;
static struct ending before;

// What the new image gets. A memfd holds each text that was kept, and ends each with a NUL; the last one counts.
static atomic_int journal_fd = -1, commands_fd = -1;
static int texts_fd = -1;
static _Atomic off_t text_at = -1;

// The main thread sets these, `crashed` the crash handler of another thread; the timer's thread, and a handler of
// signals, read them.
static _Atomic enum phase phase;
static _Atomic int64_t deadline = NEVER, signalled_at = NEVER, phase_at;
static atomic_int written_status;
static atomic_bool crashed;

// When the program must be over.
static int64_t due(void)
{
    enum phase now = phase;
    int64_t signalled = signalled_at, begun = phase_at;
    if (now == IDLE)
        return NEVER;
    if (crashed)
        return 0;
    if (now == WRITTEN && signalled < begun)
        signalled = begun;
    int64_t at = clock_sooner(clock_after(deadline, patience[now].past_deadline),
                              clock_after(signalled, patience[now].past_signal));
    return clock_sooner(at, clock_after(begun, patience[now].past_begin));
}

// Safe in a signal handler, and if a handler interrupts it.
static void set_timer(void)
{
    for (int64_t at = due(); timer_fd >= 0; at = due()) {
        struct itimerspec timer = {.it_value = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000 + 1}};
        if (at == NEVER)
            timer.it_value = (struct timespec){0}; // none
        timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
        if (at == due())
            return;
    }
}

static void begin_phase(enum phase next)
{
    phase_at = clock_now();
    phase = next;
    set_timer();
}

static void signalled(void)
{
    int64_t none = NEVER;
    atomic_compare_exchange_strong(&signalled_at, &none, clock_now());
    set_timer();
}

static void pass_on(int fd)
{
    if (fd >= 0)
        fcntl(fd, F_SETFD, 0);
}

// Only the first thread goes on, and no signal interrupts it: not the new image either, before its handlers stand.
// Nothing here may allocate memory or wait for a lock: the main thread may hold any.
static _Noreturn void end(const char *reason)
{
    static atomic_flag ends = ATOMIC_FLAG_INIT;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    while (atomic_flag_test_and_set(&ends))
        pause();
    setitimer(ITIMER_REAL, &(struct itimerval){{0}, {0}}, NULL); // it outlives an exec
    terminal_mode_restore();                                     // so that the new image finds it
    if (phase == WRITTEN || phase == LAST)
        _exit(written_status);
    pass_on(journal_fd);
    pass_on(texts_fd);
    pass_on(commands_fd);
    snprintf(variable, sizeof variable, "SBA_END=%d %s %d %d %d %jd %d", (int)getpid(), reason, interrupt_signal(),
             journal_fd, texts_fd, (intmax_t)text_at, commands_fd);
    variables[variable_count] = variable;
    for (int i = 0; i < TRIES; i++) { // memory and processes may be short for a moment
        execve(program, arguments, variables);
        poll(NULL, 0, PAUSE);
    }
    _exit(ENDING_UNWRITABLE);
}

static void *watch(void *unused)
{
    (void)unused;
    for (;;) {
        interrupt_wait_for(timer_fd);
        io_forget(timer_fd);
        if (clock_now() >= due())
            end(crashed ? "crash" : interrupt_signal() ? "signal" : "timeout");
    }
    return NULL;
}

// A handler runs in any thread, and in a child that shares our memory until it executes a program. A launcher has
// confined itself, and with it what it would execute: the timer's thread ends the job in its place.
static void on_crash(int number, siginfo_t *info, void *unused)
{
    (void)unused, (void)info;
    pid_t thread = (pid_t)syscall(SYS_gettid);
#ifdef __SANITIZE_ADDRESS__
    bool own = info->si_code <= 0; // the sanitizer, which comes next, reports its own
#else
    bool own = true;
#endif
    if (phase == IDLE || getpid() != runner || !own || (thread != runner && timer_fd < 0)) {
        signal(number, SIG_DFL);
        return;
    }
    if (thread == runner || thread == timer_thread)
        end("crash");
    crashed = true;
    set_timer();
    for (;;)
        pause();
}

static void on_crashes(void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigset_t crashes;
    threads_crashes(&crashes);
    if (handler)
        action.sa_sigaction = handler;
    else
        action.sa_handler = SIG_IGN;
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&crashes, number) == 1)
            sigaction(number, &action, NULL);
}

static void catch_crashes(void)
{
    static char stack[STACK];
    const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternative, NULL);
    on_crashes(on_crash);
}

static int start_watching(enum phase first, struct error *error)
{
    begin_phase(first); // also without the thread, for crashes and memory
    if (timer_fd < 0) {
        timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        int outcome = timer_fd < 0 ? errno : threads_start(watch, NULL, &timer_thread);
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
    if (text_at < 0 || (!variables && copy_environment() < 0))
        return error_memory(error, "cannot keep what the end of the job must know");
    catch_crashes();
    return start_watching(WORKING, error);
}

int ending_last(int status, struct error *error)
{
    written_status = status;
    return start_watching(LAST, error);
}

void ending_stop(void)
{
    begin_phase(IDLE);
    deadline = signalled_at = NEVER;
}

int ending_keep(const char *information, int journal, struct error *error)
{
    static struct spool texts = {.fd = -1};
    off_t at = (off_t)texts.size;
    bool is_open =
        texts.fd >= 0 || spool_open(&texts, "") == 0 || spool_open(&texts, "/tmp") == 0; // a memfd may be forbidden
    if (!is_open || spool_append(&texts, information, strlen(information) + 1) < 0)
        return error_system(error, errno, "cannot keep what the end of the job must know");
    texts_fd = texts.fd;
    journal_fd = journal;
    text_at = at;
    return 0;
}

int ending_commands(void)
{
    static struct spool commands = {.fd = -1};
    if (commands.fd < 0)
        spool_open(&commands, "");
    commands_fd = commands.fd;
    return commands.fd;
}

void ending_deadline(int64_t at)
{
    deadline = at;
    set_timer();
}

void ending_begun(void)
{
    if (phase == WORKING)
        begin_phase(ENDING);
}

void ending_written(int status)
{
    written_status = status;
    if (phase == WORKING || phase == ENDING)
        begin_phase(WRITTEN);
}

void ending_memory(void)
{
    if (phase != IDLE && variables)
        end("memory");
}

const struct ending *ending_inherited(void)
{
    return &before;
}

// What stands in a descriptor from an offset on, with a NUL behind; NULL: nothing.
static char *read_inherited(int fd, off_t from, size_t *size)
{
    struct stat status;
    if (fd < 0 || from < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fstat(fd, &status) < 0 || status.st_size < from)
        return NULL;
    cleanup_buffer struct buffer bytes = {0};
    *size = (size_t)(status.st_size - from);
    const struct spool spool = {.fd = fd};
    if (spool_read(&spool, (uint64_t)from, *size, &bytes) < 0 || buffer_append(&bytes, "", 1) < 0)
        return NULL;
    return steal_pointer(&bytes.data);
}

static bool inherit(const char *given)
{
    int pid, texts, commands;
    intmax_t at;
    size_t size = 0;
    if (sscanf(given, "%d %15s %d %d %d %jd %d", &pid, before.reason, &before.signal, &before.journal, &texts, &at,
               &commands) != 7 ||
        pid != getpid())
        return false;
    if (before.journal < 0 || fcntl(before.journal, F_SETFD, FD_CLOEXEC) < 0)
        before.journal = -1;
    before.information = read_inherited(texts, (off_t)at, &size);
    before.commands = (pid_t *)read_inherited(commands, 0, &size);
    before.command_count = before.commands ? size / sizeof *before.commands : 0;
    return true;
}

void ending_begin(char **argv)
{
    const char *given = getenv("SBA_END");
    sigset_t none;
    arguments = argv;
    if (given && inherit(given)) {
#ifndef __SANITIZE_ADDRESS__ // which reports crashes
        on_crashes(NULL);    // from others; a crash of ours ends the program all the same
#endif
        interrupt_on_signal(signalled);
        if (before.signal)
            raise(before.signal);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL); // of the thread that executed us
    } else {
        before = (struct ending){.journal = -1};
    }
    unsetenv("SBA_END");
}
