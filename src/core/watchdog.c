// SPDX-License-Identifier: Apache-2.0
// Ends the job if the main thread does not, see watchdog.h.
#include "core/watchdog.h"

#include "core/cleanup.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/process_children.h"
#include "core/stream.h"
#include "core/terminal_mode.h"
#include "core/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAST_DEADLINE = 2500,
    PAST_SIGNAL = 5000,
    ENDING_PAST_DEADLINE = 4500, // if the main thread is ending the job
    ENDING_PAST_SIGNAL = 7500,
    REPORTING = 35000,            // ms for what follows the result
    REPORTING_PAST_SIGNAL = 7000, // the same after a signal
    FREEZING = 100,               // ms until the main thread has stopped
    KILLING = 300,                // ms without the end of a process
    LONGEST_KILLING = 2000,       // ms
    WRITING = 450,                // ms for the result file
    READER_GONE = 30000,          // ms without progress, after which nobody reads stdout
    UNWRITABLE = 3,               // exit status
    STACK = 256 << 10,
    NUMBERS_TRIED = 32768, // PIDs, if /proc does not list our children
};

static const int freeze_signal = SIGUSR2;
static const int64_t never = INT64_MAX;

static char *path;                 // NULL: stdout
static char *directory, *new_path; // beside path
static int timer_fd = -1, signal_fd = -1;
static char *log_line;
static size_t log_size;

static _Atomic int64_t deadline = INT64_MAX, signalled_at = INT64_MAX, written_at = INT64_MAX;
static atomic_int written_status;
static struct watchdog_result *_Atomic kept;
static atomic_bool watching, is_ending, ending, frozen, may_write, stands, done;

// When the program must be over.
static int64_t due(void)
{
    int64_t written = written_at, signalled = signalled_at;
    if (!watching)
        return never;
    if (written != never)
        return signalled == never ? written + REPORTING
                                  : (signalled > written ? signalled : written) + REPORTING_PAST_SIGNAL;
    int64_t past_deadline = deadline, past_signal = signalled;
    if (past_deadline < never - ENDING_PAST_DEADLINE)
        past_deadline += is_ending ? ENDING_PAST_DEADLINE : PAST_DEADLINE;
    if (past_signal != never)
        past_signal += is_ending ? ENDING_PAST_SIGNAL : PAST_SIGNAL;
    return past_deadline < past_signal ? past_deadline : past_signal;
}

// Safe in a signal handler, and if a handler interrupts it.
static void set_timer(void)
{
    if (timer_fd < 0)
        return;
    for (int64_t at = due();; at = due()) {
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

// The signal handler that stops the main thread for good. The TID of the main thread is the PID.
static void freeze(int unused)
{
    (void)unused;
    if (!ending || syscall(SYS_gettid) != getpid())
        return;
    frozen = true;
    for (;;)
        pause();
}

// A main thread that hangs in the kernel does nothing anyway, and freezes when it returns.
static void freeze_main(void)
{
    syscall(SYS_tgkill, getpid(), getpid(), freeze_signal);
    for (int i = 0; i < FREEZING && !frozen; i++)
        poll(NULL, 0, 1);
}

static void kill_child(pid_t pid, void *unused)
{
    siginfo_t info;
    (void)unused;
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0)
        kill(pid, SIGKILL);
}

static void kill_children(void)
{
    pid_t threads[THREADS_MOST];
    bool listed = true;
    for (size_t i = threads_all(threads); i-- > 0 && getpid() != 1;) {
        char list[64];
        snprintf(list, sizeof list, "/proc/self/task/%d/children", (int)threads[i]);
        listed = children_in_list(list, kill_child, NULL) == 0 && listed;
    }
    if (getpid() == 1)
        kill(-1, SIGKILL);
    else if (!listed)
        for (pid_t pid = getpid() + 1; pid <= getpid() + NUMBERS_TRIED; pid++)
            kill_child(pid, NULL);
}

// Kills and reaps until nothing is left: the children of the dead become ours.
static void kill_all(void)
{
    int64_t began = clock_now(), last = began;
    while (clock_now() < last + KILLING && last < began + LONGEST_KILLING) {
        pid_t reaped;
        kill_children();
        while ((reaped = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
            last = clock_now();
        if (reaped < 0 && errno == ECHILD)
            return;
        poll(NULL, 0, 1);
    }
}

// SIGTERM wins over SIGINT. The main thread may not have seen the signal yet.
static int cancel_number(void)
{
    sigset_t pending;
    if (interrupt_signal() || sigpending(&pending) < 0)
        return interrupt_signal();
    return sigismember(&pending, SIGTERM) ? SIGTERM : sigismember(&pending, SIGINT) ? SIGINT : 0;
}

// Fills in the parts that are known only now.
static void complete(struct watchdog_result *result, enum interrupt_reason reason)
{
    static char head[256], tail[256];
    char started[CLOCK_TIMESTAMP_SIZE], finished[CLOCK_TIMESTAMP_SIZE];
    int64_t now = clock_wall(), duration = now - result->started_wall;
    if (result->began != WATCHDOG_CONTINUED)
        duration = clock_now() - result->began;
    clock_timestamp(result->started_wall, started);
    clock_timestamp(now, finished);
    int size = snprintf(head, sizeof head,
                        ",\"status\":\"%s\",\"started_at\":\"%s\",\"finished_at\":\"%s\",\"duration_ms\":%lld",
                        reason == INTERRUPT_CANCELLED ? "failure" : "timeout", started, finished,
                        (long long)(duration > 0 ? duration : 0));
    result->parts[result->head] = (struct iovec){head, (size_t)size};
    size =
        snprintf(tail, sizeof tail,
                 ",\"failure_code\":\"%s\",\"failure_message\":\"%s, and the runner hung: its watchdog ended it\"}\n",
                 interrupt_code(reason), interrupt_message(reason));
    result->parts[result->tail] = (struct iovec){tail, (size_t)size};
}

static bool write_parts(int fd, const struct watchdog_result *result)
{
    struct error error = {0};
    return file_write_parts(fd, result->parts, result->count, &error) == 0;
}

// Replaces the result file by a new one. fsync comes after the rename, because it may take long.
static bool replace(const struct watchdog_result *result)
{
    unlink(new_path);
    cleanup_fd int fd = open(new_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    if (!write_parts(fd, result) || fchmod(fd, 0644) < 0 || rename(new_path, path) < 0) {
        unlink(new_path);
        return false;
    }
    stands = true;
    fsync(fd);
    cleanup_fd int above = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above >= 0)
        fsync(above);
    return true;
}

static void write_in_place(const struct watchdog_result *result)
{
    struct stat status;
    cleanup_fd int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || !write_parts(fd, result))
        return;
    off_t end = lseek(fd, 0, SEEK_CUR);
    stands = ftruncate(fd, end) == 0;
    fsync(fd);
}

static void write_to_stdout(const struct watchdog_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        const struct iovec *part = &result->parts[i];
        if (stream_write(STDOUT_FILENO, part->iov_base, part->iov_len, READER_GONE, INT64_MAX) < part->iov_len)
            return;
    }
    stands = true;
}

static void write_result(void)
{
    const struct watchdog_result *result = kept;
    if (!path)
        write_to_stdout(result);
    else if (!replace(result))
        write_in_place(result);
    done = true;
}

// If the file system hangs, so does the thread that writes. Another thread must be left to end the program.
static void *write_when_told(void *unused)
{
    (void)unused;
    while (!may_write)
        poll(NULL, 0, 1);
    write_result();
    return NULL;
}

static void log_end(void)
{
    enum { TIME_AT = sizeof "{\"ts\":\"" - 1 };
    char time[CLOCK_TIMESTAMP_SIZE];
    clock_timestamp(clock_wall(), time);
    if (log_size > TIME_AT + strlen(time) && strncmp(log_line, "{\"ts\":\"", TIME_AT) == 0)
        memcpy(log_line + TIME_AT, time, strlen(time));
    stream_write(STDERR_FILENO, log_line, log_size, 0, 0);
}

static int start_thread(void *(*run)(void *))
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int outcome = pthread_create(&thread, &attributes, run, NULL);
    pthread_attr_destroy(&attributes);
    return outcome;
}

static _Noreturn void end(void)
{
    bool helped =
        written_at == never && start_thread(write_when_told) == 0; // before the freeze, because it allocates memory
    ending = true;
    freeze_main();
    if (written_at != never)
        _exit(written_status);
    int number = cancel_number();
    complete(kept, number ? INTERRUPT_CANCELLED : INTERRUPT_TIMEOUT);
    kill_all();
    int64_t began = clock_now();
    may_write = true;
    if (!helped)
        write_result();
    while (!done && (!path || clock_now() < began + WRITING))
        poll(NULL, 0, 1);
    log_end();
    terminal_mode_restore();
    _exit(!stands ? UNWRITABLE : number ? 128 + number : 124);
}

static void *watch(void *unused)
{
    (void)unused;
    threads_join();
    struct pollfd waits[] = {{.fd = timer_fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
    for (;;) {
        poll(waits, 2, -1);
        if (waits[1].revents) { // the main thread has not handled it yet
            signalled();
            waits[1].fd = -1;
        }
        if (clock_now() >= due())
            end();
    }
    return NULL;
}

// Makes the paths now, while memory may be allocated.
static int prepare(const char *result_path, struct error *error)
{
    if (strcmp(result_path, "-") == 0)
        return 0;
    const char *slash = strrchr(result_path, '/');
    const char *name = slash ? slash + 1 : result_path;
    int size = (int)(name - result_path);
    path = strdup(result_path);
    if (!path || asprintf(&directory, "%.*s", size ? size : 2, size ? result_path : "./") < 0 ||
        asprintf(&new_path, "%.*s.%s.last", size, result_path, name) < 0)
        return error_set(error, "out_of_memory", 0, "no memory is left");
    return 0;
}

// The main thread handles signals. signal_fd shows those that it has not handled yet.
static int start_watching(struct error *error)
{
    if (timer_fd >= 0)
        return 0;
    sigset_t cancels, all, before;
    sigemptyset(&cancels);
    sigaddset(&cancels, SIGTERM);
    sigaddset(&cancels, SIGINT);
    sigfillset(&all);
    struct sigaction action = {.sa_handler = freeze, .sa_mask = all};
    sigaction(freeze_signal, &action, NULL);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    signal_fd = signalfd(-1, &cancels, SFD_CLOEXEC | SFD_NONBLOCK);
    if (timer_fd < 0 || signal_fd < 0)
        return error_system(error, errno, "cannot watch over the end of the job");
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int outcome = start_thread(watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (outcome)
        return error_system(error, outcome, "cannot watch over the end of the job");
    return 0;
}

int watchdog_start(const char *result_path, struct error *error)
{
    if (prepare(result_path, error) < 0 || start_watching(error) < 0)
        return -1;
    watching = true;
    interrupt_on_signal(signalled);
    if (interrupt_signal()) // one came before
        signalled();
    return 0;
}

void watchdog_stop(void)
{
    watching = false;
    set_timer();
    deadline = signalled_at = written_at = never;
    is_ending = false;
    free(path);
    free(directory);
    free(new_path);
    free(log_line);
    path = directory = new_path = log_line = NULL;
    log_size = 0;
}

void watchdog_keep(struct watchdog_result *result)
{
    kept = result;
}

void watchdog_log(const char *line, size_t size)
{
    char *copy = malloc(size);
    if (!copy)
        return;
    memcpy(copy, line, size);
    free(log_line);
    log_line = copy;
    log_size = size;
}

void watchdog_deadline(int64_t at)
{
    deadline = at;
    set_timer();
}

void watchdog_ending(void)
{
    is_ending = true;
    set_timer();
}

void watchdog_written(int status)
{
    written_status = status;
    written_at = clock_now();
    set_timer();
}
