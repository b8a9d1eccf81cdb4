// SPDX-License-Identifier: Apache-2.0
// Runs commands, see process.h.
#include "core/process/process.h"

#include "core/base/cleanup.h"
#include "core/base/ending.h"
#include "core/base/interrupt.h"
#include "core/process/oom.h"
#include "core/process/process_output.h"
#include "core/process/process_spawn.h"
#include "core/process/process_tree.h"
#include "core/process/process_usage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum {
    GRACE = 2000, // from SIGTERM to SIGKILL
    LINGER = 100, // for output of processes that outlive their command
    TICK_INTERVAL = 100,
};

// A running command.
struct run {
    const struct process_options *options;
    struct spawn spawn;
    struct child child;
    struct process_output output;
    int ends[PROCESS_STREAMS]; // the writing ends of stdout and stderr; -1: closed
    int input;                 // writing end, non-blocking; -1: all is written, or nobody reads
    size_t written;
    struct pids spared; // children that earlier commands left
    int64_t started;
    uint64_t oom_kills; // before it started
    int64_t next_tick;
    int64_t next_news; // from then on, news are passed at once
    bool told;         // news were passed
    struct tree tree;  // what is ended
    int64_t kill_at;
    enum process_ending ending;
    bool terminated; // SIGTERM was sent
    bool over;
};

static int null_device(void)
{
    static int fd = -1;
    if (fd < 0)
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    return fd;
}

static int open_pipe(int *reading, int *writing, struct error *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_system(error, errno, "cannot start a command: no pipe is to be had");
    *reading = ends[0];
    *writing = ends[1];
    return 0;
}

// Opens the pipe for the command's stdin. *theirs stays -1 if it reads /dev/null. Without /dev/null, it gets a pipe
// without a writer.
static int open_input(struct run *run, int *theirs, struct error *error)
{
    if (!run->options->input && null_device() >= 0)
        return 0;
    if (open_pipe(theirs, &run->input, error) < 0)
        return -1;
    fcntl(run->input, F_SETFL, O_NONBLOCK);
    return 0;
}

// Our copies of the writing ends stay open until the command has ended, so that its end wakes us once, and not also for
// the end of each stream.
static int open_outputs(struct run *run, struct error *error)
{
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        if (open_pipe(&run->output.streams[i].fd, &run->ends[i], error) < 0)
            return -1;
        fcntl(run->output.streams[i].fd, F_SETFL, O_NONBLOCK);
    }
    return 0;
}

static void close_ends(struct run *run)
{
    for (int i = 0; i < PROCESS_STREAMS; i++)
        cleanup_close(&run->ends[i]);
}

static int64_t own_deadline(const struct run *run)
{
    const int64_t timeout = run->options->timeout;
    return timeout > INT64_MAX - run->started ? INT64_MAX : run->started + timeout;
}

static int start(struct run *run, struct error *error)
{
    cleanup_fd int in = -1;
    if (open_input(run, &in, error) < 0 || open_outputs(run, error) < 0)
        return -1;
    run->spawn = (struct spawn){
        .argv = run->options->argv,
        .env = run->options->env,
        .directory = run->options->directory,
        .standard = {in >= 0 ? in : null_device(), run->ends[PROCESS_STDOUT], run->ends[PROCESS_STDERR]},
        .apart = run->options->apart,
        .until = own_deadline(run),
    };
    run->child.pid = spawn_command(&run->spawn, error);
    if (run->child.pid < 0)
        return -1;
    tree_began(run->child.pid);
    return 0;
}

static void write_input(struct run *run)
{
    const struct process_options *options = run->options;
    ssize_t count = write(run->input, options->input + run->written, options->input_size - run->written);
    if (count >= 0)
        run->written += (size_t)count;
    else if (errno == EAGAIN || errno == EINTR)
        return;
    if (count < 0 || run->written == options->input_size)
        cleanup_close(&run->input); // EPIPE: it reads no more, which is no failure
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// The timeout for poll: milliseconds until a time limit or the next tick.
static int poll_timeout(const struct run *run)
{
    int64_t now = clock_now(), next = run->kill_at;
    if (!run->terminated)
        next = sooner(own_deadline(run), run->options->tick ? run->next_tick : INT64_MAX);
    int64_t left = next == INT64_MAX ? -1 : next > now ? sooner(next - now, INT_MAX) : 0;
    return run->terminated ? (int)left : interrupt_poll_timeout(left);
}

// Waits for an event; reads output and writes input. Returns how many processes were reaped.
static size_t wait_and_move(struct run *run)
{
    enum { OUT, ERR, IN, CHILDREN, INTERRUPT, ALL };
    struct process_stream *streams = run->output.streams;
    struct pollfd events[ALL] = {
        [OUT] = {.fd = streams[PROCESS_STDOUT].fd, .events = POLLIN},
        [ERR] = {.fd = streams[PROCESS_STDERR].fd, .events = POLLIN},
        [IN] = {.fd = run->input, .events = POLLOUT},
        [CHILDREN] = {.fd = children_fd(), .events = POLLIN},
        [INTERRUPT] = {.fd = run->terminated ? -1 : interrupt_fd(), .events = POLLIN},
    };
    int ready = poll(events, ALL, poll_timeout(run));
    if (ready <= 0)
        return ready < 0 ? children_reap(&run->child) : 0; // most likely SIGCHLD interrupted it
    if (events[OUT].revents && events[ERR].revents)
        output_read_waiting(&run->output, PROCESS_STDOUT); // so that the last output on stderr stays last
    else if (events[OUT].revents)
        output_read(&run->output, PROCESS_STDOUT);
    if (events[ERR].revents)
        output_read(&run->output, PROCESS_STDERR);
    if (events[IN].revents)
        write_input(run);
    return events[CHILDREN].revents ? children_reap(&run->child) : 0;
}

// A deadline or cancel also ends what earlier commands left.
static void terminate(struct run *run, enum process_ending ending)
{
    int64_t began = clock_now();
    bool all = ending == PROCESS_DEADLINE || ending == PROCESS_CANCELLED;
    run->ending = ending;
    run->terminated = true;
    if (all)
        ending_begun();
    run->tree = (struct tree){.command = &run->child, .spared = all ? NULL : &run->spared};
    run->kill_at = began + tree_terminate(&run->tree, GRACE);
}

static bool tell(struct run *run)
{
    const struct process_news *news = &run->output.news;
    bool has_news = news->bytes.size > 0 || news->missing > 0;
    bool go_on = run->options->tick(run->options->data, news->bytes.data, news->bytes.size, news->missing);
    output_seen(&run->output);
    run->next_tick = clock_now() + TICK_INTERVAL;
    if (has_news)
        run->next_news = run->next_tick;
    run->told |= has_news;
    return go_on;
}

static bool tick(struct run *run, int64_t now)
{
    const struct process_news *news = &run->output.news;
    if (!run->options->tick)
        return true;
    bool due = now >= run->next_tick || (news->bytes.size > 0 && now >= run->next_news);
    return due || (news->whole && news->bytes.size >= NEWS_MOST) ? tell(run) : true;
}

// Passes what came after the last tick, unless the command ended before any news were passed.
static bool tell_rest(struct run *run)
{
    const struct process_news *news = &run->output.news;
    if (run->ending == PROCESS_TICK || news->bytes.size == 0 || !(run->told || news->whole))
        return true;
    return tell(run);
}

// Why the command must end now; PROCESS_EXIT: it may run on.
static enum process_ending reason_to_end(struct run *run)
{
    int64_t now = clock_now();
    enum interrupt_reason reason = interrupt_reason();
    if (reason != INTERRUPT_NONE)
        return reason == INTERRUPT_TIMEOUT ? PROCESS_DEADLINE : PROCESS_CANCELLED;
    if (now >= own_deadline(run))
        return PROCESS_TIMEOUT;
    if (run->options->end_at_limit && output_past_limit(&run->output))
        return PROCESS_OUTPUT_LIMIT;
    return tick(run, now) ? PROCESS_EXIT : PROCESS_TICK;
}

// Reads the rest of the output. Waits at most `linger` milliseconds for processes that still hold the pipes.
static void end(struct run *run, int linger)
{
    close_ends(run);
    output_drain(&run->output, linger);
    run->over = true;
}

static void go_on(struct run *run)
{
    if (run->child.ended) {
        end(run, LINGER);
        return;
    }
    enum process_ending reason = reason_to_end(run);
    if (reason != PROCESS_EXIT)
        terminate(run, reason);
}

static void see_to_end(struct run *run, bool changed)
{
    bool late = clock_now() >= run->kill_at;
    if (late)
        tree_kill(&run->tree);
    else if (changed && !tree_gone(&run->tree))
        tree_terminate(&run->tree, GRACE);
    if (late || (changed && tree_gone(&run->tree)))
        end(run, 0);
}

static void follow(struct run *run)
{
    go_on(run);
    while (!run->over) {
        bool changed = wait_and_move(run) > 0;
        if (run->terminated)
            see_to_end(run, changed);
        else
            go_on(run);
    }
}

static struct process_text take_text(struct process_stream *stream)
{
    struct process_text text = {.text = stream->kept, .truncated = stream->truncated};
    stream->kept = (struct buffer){0};
    return text;
}

// Only of a command that failed by itself.
static bool failed_for_memory(const struct run *run)
{
    return run->ending == PROCESS_EXIT && run->child.ended && run->child.status != 0 && oom_kills() > run->oom_kills;
}

static int fill_outcome(struct run *run, struct process_outcome *outcome, struct error *error)
{
    const struct child *child = &run->child;
    bool exited = child->ended && WIFEXITED(child->status);
    *outcome = (struct process_outcome){
        .ending = run->ending,
        .exit_code = exited ? WEXITSTATUS(child->status) : -1,
        .signal = child->ended && WIFSIGNALED(child->status) ? WTERMSIG(child->status) : 0,
        .duration = clock_now() - run->started,
        .cpu_time = usage_cpu_time(&child->usage),
        .max_rss = usage_max_rss(&child->usage),
        .out_of_memory = failed_for_memory(run),
    };
    if (output_repair(&run->output) < 0 ||
        transcript_text(&run->output.transcript, &outcome->output, &outcome->tail, &outcome->missing) < 0) {
        process_outcome_free(outcome);
        return error_set(error, "out_of_memory", 0, "out of memory for the output of %s", run->options->argv[0]);
    }
    outcome->out = take_text(&run->output.streams[PROCESS_STDOUT]);
    outcome->err = take_text(&run->output.streams[PROCESS_STDERR]);
    return 0;
}

static void release(struct run *run)
{
    cleanup_close(&run->input);
    close_ends(run);
    output_free(&run->output);
    pids_free(&run->spared);
    tree_free(&run->tree);
}

int process_run(const struct process_options *options, struct process_outcome *outcome, struct error *error)
{
    __attribute__((cleanup(release))) struct run run = {
        .options = options, .ends = {-1, -1}, .input = -1, .started = clock_now()};
    run.output.limit = options->output_limit;
    transcript_limit(&run.output.transcript, options->output_limit);
    run.output.streams[PROCESS_STDOUT].fd = run.output.streams[PROCESS_STDERR].fd = -1;
    run.output.news.wanted = options->tick != NULL;
    run.output.news.whole = options->whole_news;
    run.next_tick = run.started; // the first tick comes as soon as the command runs
    run.next_news = run.started + TICK_INTERVAL;
    if (children_watch(error) < 0)
        return -1;
    if (children_any()) {
        children_reap(NULL);
        children_own(&run.spared);
    }
    run.oom_kills = oom_kills();
    if (start(&run, error) < 0)
        return -1;
    if (!options->input || options->input_size == 0)
        cleanup_close(&run.input);
    follow(&run);
    if (!tell_rest(&run))
        run.ending = PROCESS_TICK;
    if (run.child.ended && WIFEXITED(run.child.status) && WEXITSTATUS(run.child.status) == SPAWN_FAILED &&
        spawn_check(&run.spawn, error) < 0)
        return -1;
    return fill_outcome(&run, outcome, error);
}

void process_outcome_free(struct process_outcome *outcome)
{
    buffer_free(&outcome->out.text);
    buffer_free(&outcome->err.text);
    buffer_free(&outcome->output);
    buffer_free(&outcome->tail);
}

// All that ended were reaped, so none of these is a zombie.
static struct process_left what_is_left(void)
{
    cleanup_pids struct pids pids = {0};
    if (children_any())
        children_own(&pids);
    return (struct process_left){pids.count, pids.count ? pids.items[0] : 0};
}

size_t process_finish(int64_t grace, struct process_left *left)
{
    __attribute__((cleanup(tree_free))) struct tree everything = {0};
    struct error error = {0};
    *left = (struct process_left){0};
    if (!children_any())
        return 0;
    if (children_watch(&error) < 0)
        error_clear(&error); // then ends are noticed at the latest after the grace period
    children_reap(NULL);
    size_t count = tree_gone(&everything) ? 0 : tree_end(&everything, grace);
    *left = what_is_left();
    return count;
}

void process_idle(void)
{
    struct error error = {0};
    if (children_watch(&error) < 0)
        error_clear(&error);
    while (interrupt_reason() != INTERRUPT_CANCELLED) {
        struct pollfd events[] = {{children_fd(), POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
        children_reap(NULL);
        poll(events, 2, -1);
    }
}
