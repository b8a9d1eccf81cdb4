// SPDX-License-Identifier: Apache-2.0
// Runs one command: pipes, poll, limits, ends. See process.h.
#include "core/process.h"

#include "core/cleanup.h"
#include "core/interrupt.h"
#include "core/spawn.h"
#include "core/tree.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    GRACE = 2000,          // from SIGTERM to SIGKILL
    LINGER = 100,          // for output of what a command left behind, once it ended
    REAP_INTERVAL = 100,   // for orphans that we inherit meanwhile
    CHUNK = 64 << 10,      // a read
    LARGE_CHUNK = 1 << 20, // once a command prints a lot
};

enum { FD_IN, FD_OUT, FD_ERR, FD_PROCESS, FD_INTERRUPT, FD_COUNT };

struct run {
    const struct process_options *options;
    struct process_outcome *outcome;
    pid_t pid;
    int fds[FD_COUNT];                                      // -1: closed
    int null;                                               // /dev/null, where what is discarded goes
    size_t written;                                         // of the input
    int64_t started, ended, stopping, last_tick, last_reap; // 0: not yet
    bool enlarged[FD_COUNT], killed;
};

static size_t kept(const struct run *run)
{
    return run->outcome->out.data.size + run->outcome->err.data.size;
}

// The interleaved output: what comes first stays, of the rest the last.
static void blend(struct process_outcome *outcome, const char *bytes, size_t size)
{
    size_t room = PROCESS_BLEND_HALF - outcome->head.size;
    size_t first = size < room ? size : room;
    struct buffer *tail = &outcome->tail;
    buffer_append(&outcome->head, bytes, first);
    bytes += first;
    size -= first;
    if (size > PROCESS_BLEND_HALF) {
        bytes += size - PROCESS_BLEND_HALF;
        size = PROCESS_BLEND_HALF;
    }
    if (tail->size + size > PROCESS_BLEND_HALF) {
        size_t old = tail->size + size - PROCESS_BLEND_HALF;
        memmove(tail->data, tail->data + old, tail->size - old);
        tail->size -= old;
    }
    buffer_append(tail, bytes, size);
}

static void close_end(struct run *run, int which)
{
    cleanup_close(&run->fds[which]);
    run->fds[which] = -1;
}

// Ends the command for the first of several reasons.
static void stop(struct run *run, enum process_end end)
{
    if (run->stopping)
        return;
    run->stopping = interrupt_now();
    run->outcome->end = end;
    tree_signal(run->pid, SIGTERM);
    tree_signal(run->pid, SIGCONT);
}

// Past the limit: what comes is counted and thrown away, in the kernel where it can be.
static ssize_t throw_away(struct run *run, int which)
{
    char scrap[4096];
    ssize_t size = splice(run->fds[which], NULL, run->null, NULL, LARGE_CHUNK, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (size < 0 && errno == EINVAL)
        size = read(run->fds[which], scrap, sizeof scrap);
    if (size > 0 && !run->options->discard)
        stop(run, PROCESS_OUTPUT_LIMIT);
    if (size > 0)
        run->outcome->tail.size = 0; // it is no longer the end of what was printed
    return size;
}

static ssize_t take(struct run *run, int which, struct process_stream *stream, size_t room)
{
    size_t chunk = run->enlarged[which] ? LARGE_CHUNK : CHUNK;
    if (chunk > room)
        chunk = room;
    if (buffer_reserve(&stream->data, chunk) < 0)
        return throw_away(run, which);
    ssize_t size = read(run->fds[which], stream->data.data + stream->data.size, chunk);
    if (size > 0) {
        blend(run->outcome, stream->data.data + stream->data.size, (size_t)size);
        stream->data.size += (size_t)size;
    }
    return size;
}

// Reads once. False when there is nothing more for now, or ever.
static bool receive(struct run *run, int which)
{
    struct process_stream *stream = which == FD_OUT ? &run->outcome->out : &run->outcome->err;
    size_t room = run->options->output_limit - kept(run);
    if (run->fds[which] < 0)
        return false;
    ssize_t size = room ? take(run, which, stream, room) : throw_away(run, which);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        close_end(run, which);
    if (size <= 0)
        return false;
    stream->seen += (uint64_t)size;
    if (!run->enlarged[which] && stream->seen > 4 * CHUNK) {
        run->enlarged[which] = true;
        fcntl(run->fds[which], F_SETPIPE_SZ, LARGE_CHUNK); // refused where the user has too many: no harm
    }
    return true;
}

static void send_input(struct run *run)
{
    const struct process_options *options = run->options;
    ssize_t size = write(run->fds[FD_IN], options->input + run->written, options->input_size - run->written);
    if (size > 0)
        run->written += (size_t)size;
    if (run->written == options->input_size || (size < 0 && errno != EAGAIN && errno != EINTR))
        close_end(run, FD_IN);
}

// Takes the command's end, once it is there.
static void reap(struct run *run)
{
    int status;
    struct rusage usage;
    if (run->ended || wait4(run->pid, &status, WNOHANG, &usage) != run->pid)
        return;
    run->ended = interrupt_now();
    close_end(run, FD_PROCESS);
    close_end(run, FD_IN);
    run->outcome->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    run->outcome->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    run->outcome->cpu_time = (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                             (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
    run->outcome->max_rss = (int64_t)usage.ru_maxrss * 1024;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Milliseconds until something is due even if nothing happens.
static int64_t next_due(const struct run *run, int64_t now)
{
    int64_t due = run->last_reap + REAP_INTERVAL;
    if (run->options->tick)
        due = earlier(due, run->last_tick + run->options->tick_interval);
    if (run->options->timeout >= 0 && !run->stopping)
        due = earlier(due, run->started + run->options->timeout);
    if (run->stopping)
        due = earlier(due, now + 10);
    if (run->ended)
        due = earlier(due, run->ended + LINGER);
    return due > now ? due - now : 0;
}

static void check_reasons(struct run *run, int64_t now)
{
    enum interrupt_reason reason = interrupt_reason();
    if (run->ended || run->stopping)
        return;
    if (reason == INTERRUPT_CANCELLED)
        stop(run, PROCESS_CANCELLED);
    else if (reason == INTERRUPT_TIMEOUT)
        stop(run, PROCESS_DEADLINE);
    else if (run->options->timeout >= 0 && now >= run->started + run->options->timeout)
        stop(run, PROCESS_TIMEOUT);
}

static void check_clock(struct run *run)
{
    int64_t now = interrupt_now();
    check_reasons(run, now);
    if (run->stopping && !run->killed && now >= run->stopping + GRACE) {
        run->killed = true;
        for (int round = 0; round < 3; round++)
            tree_signal(run->pid, SIGSTOP);
        tree_signal(run->pid, SIGKILL);
    }
    if (now >= run->last_reap + REAP_INTERVAL) {
        run->last_reap = now;
        tree_reap(run->ended ? 0 : run->pid);
    }
    if (run->options->tick && now >= run->last_tick + run->options->tick_interval) {
        run->last_tick = now;
        if (run->options->tick(run->options->tick_context))
            stop(run, PROCESS_TICK);
    }
}

// Whether nothing more is to be waited for: the command has ended, and its output too, or what holds that on is not
// worth waiting for. A command that was stopped is over when its whole tree is.
static bool is_over(const struct run *run)
{
    if (!run->ended)
        return false;
    if (run->stopping)
        return (run->killed && interrupt_now() >= run->ended + LINGER) || !tree_alive(run->pid);
    return (run->fds[FD_OUT] < 0 && run->fds[FD_ERR] < 0) || interrupt_now() >= run->ended + LINGER;
}

static void wait_once(struct run *run)
{
    struct pollfd polled[FD_COUNT];
    bool watch = !run->stopping && !run->ended;
    for (int i = 0; i < FD_COUNT; i++)
        polled[i] = (struct pollfd){.fd = run->fds[i], .events = i == FD_IN ? POLLOUT : POLLIN};
    polled[FD_INTERRUPT].fd = watch ? interrupt_fd() : -1;
    int64_t due = next_due(run, interrupt_now());
    if (poll(polled, FD_COUNT, watch ? interrupt_poll_timeout(due) : (int)due) < 0)
        return;
    if (polled[FD_IN].revents)
        send_input(run);
    for (int which = FD_OUT; which <= FD_ERR; which++)
        if (polled[which].revents)
            receive(run, which);
    if (polled[FD_PROCESS].revents || run->fds[FD_PROCESS] < 0)
        reap(run);
}

// What is in the pipes when the command has ended, however much something it left behind goes on writing.
static void drain(struct run *run)
{
    for (int which = FD_OUT; which <= FD_ERR; which++)
        for (int64_t end = interrupt_now() + LINGER; receive(run, which) && interrupt_now() < end;)
            ;
}

static int open_pipe(int ours[1], int theirs[1], bool we_read, struct error *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_system(error, errno, "cannot open a pipe for the command");
    ours[0] = ends[we_read ? 0 : 1];
    theirs[0] = ends[we_read ? 1 : 0];
    fcntl(ours[0], F_SETFL, O_NONBLOCK);
    return 0;
}

static int start(struct run *run, struct error *error)
{
    const struct process_options *options = run->options;
    cleanup_fd int in = -1, out = -1, err = -1;
    run->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (run->null < 0)
        return error_system(error, errno, "cannot open /dev/null for the command");
    if (open_pipe(&run->fds[FD_OUT], &out, true, error) < 0 || open_pipe(&run->fds[FD_ERR], &err, true, error) < 0)
        return -1;
    if (options->input && open_pipe(&run->fds[FD_IN], &in, false, error) < 0)
        return -1;
    struct spawn_options spawn = {
        .argv = options->argv,
        .environment = options->environment,
        .directory = options->directory,
        .streams = {in >= 0 ? in : run->null, out, err},
    };
    run->started = run->last_tick = run->last_reap = interrupt_now();
    run->pid = spawn_command(&spawn, error);
    if (run->pid < 0)
        return -1;
    run->fds[FD_PROCESS] = (int)syscall(SYS_pidfd_open, run->pid, 0);
    return 0;
}

int process_run(const struct process_options *options, struct process_outcome *outcome, struct error *error)
{
    struct run run = {.options = options, .outcome = outcome, .fds = {-1, -1, -1, -1, -1}, .null = -1};
    *outcome = (struct process_outcome){.exit_code = -1};
    int started = start(&run, error);
    while (started == 0 && !is_over(&run)) {
        wait_once(&run);
        check_clock(&run);
    }
    if (started == 0) {
        drain(&run);
        outcome->duration = interrupt_now() - run.started;
        tree_reap(0);
    }
    for (int i = 0; i < FD_INTERRUPT; i++)
        close_end(&run, i);
    cleanup_close(&run.null);
    return started;
}

void process_outcome_free(struct process_outcome *outcome)
{
    buffer_free(&outcome->out.data);
    buffer_free(&outcome->err.data);
    buffer_free(&outcome->head);
    buffer_free(&outcome->tail);
}

void process_idle(void)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    int fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    while (interrupt_reason() == INTERRUPT_NONE) {
        struct signalfd_siginfo info;
        struct pollfd polled[2] = {{.fd = interrupt_fd(), .events = POLLIN}, {.fd = fd, .events = POLLIN}};
        tree_reap(0);
        poll(polled, 2, -1);
        while (read(fd, &info, sizeof info) > 0)
            ;
    }
    cleanup_close(&fd);
    sigprocmask(SIG_UNBLOCK, &child, NULL);
}

static const struct {
    int number;
    const char *name;
} signal_names[] = {
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},     {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},       {SIGFPE, "SIGFPE"},
    {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"},     {SIGUSR2, "SIGUSR2"},
    {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},     {SIGXCPU, "SIGXCPU"},
    {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},   {SIGVTALRM, "SIGVTALRM"}, {SIGPROF, "SIGPROF"},
    {SIGIO, "SIGIO"},     {SIGPWR, "SIGPWR"},   {SIGSTKFLT, "SIGSTKFLT"},
};

const char *process_signal_name(int number)
{
    static char other[16];
    for (size_t i = 0; i < sizeof signal_names / sizeof *signal_names; i++)
        if (signal_names[i].number == number)
            return signal_names[i].name;
    snprintf(other, sizeof other, "SIG%d", number);
    return other;
}
