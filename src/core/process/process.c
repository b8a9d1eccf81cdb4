// SPDX-License-Identifier: Apache-2.0
// Runs commands, see process.h.
#include "core/process/process.h"

#include "core/base/cleanup.h"
#include "core/base/ending.h"
#include "core/base/interrupt.h"
#include "core/base/spool.h"
#include "core/process/process_children.h"
#include "core/process/process_spawn.h"
#include "core/process/process_stat.h"
#include "core/process/process_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

enum {
    GRACE = 2000,        // from SIGTERM to SIGKILL
    LAST_PATIENCE = 300, // ms after SIGKILL, at the end of the job
    LINGER = 100,        // for output of processes that outlive their command
    TICK_INTERVAL = 100,
    MOST_UNREAD = 1 << 20, // bytes for the stdin of a command that is talked with
};

// A running command.
struct run {
    const struct process_options *options;
    struct process_child child;
    struct process_output output;
    int ends[PROCESS_STREAMS]; // the writing ends of stdout and stderr; -1: closed
    int input;                 // writing end, non-blocking; -1: all is written, or nobody reads
    size_t written;
    struct buffer answers;      // to a command that is talked with; written: how much of it
    bool is_over;               // nothing follows these
    struct process_pids spared; // children that earlier commands left
    int64_t started;
    int64_t launched;     // milliseconds of CLOCK_BOOTTIME before the command's first process was there
    int64_t own_deadline; // by its timeout
    int64_t heard;        // when it last printed something
    int64_t next_tick;    // INT64_MAX: there are none
    enum process_ending ending;
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
    if (!run->options->input && !run->options->hear && null_device() >= 0)
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

static int64_t idle_deadline(const struct run *run)
{
    return clock_after(run->heard, run->options->idle_timeout);
}

static int open_script(const struct run *run, int *fd, struct error *error)
{
    struct spool spool;
    const struct process_options *options = run->options;
    if (!options->script)
        return 0;
    int status = spool_open(&spool, "");
    *fd = spool.fd;
    if (status < 0 || spool_append(&spool, options->script, options->script_size) < 0)
        return error_system(error, errno, "cannot keep the script for the shell");
    return 0;
}

static int start(struct run *run, struct error *error)
{
    cleanup_fd int in = -1, script = -1;
    if (open_input(run, &in, error) < 0 || open_outputs(run, error) < 0 || open_script(run, &script, error) < 0)
        return -1;
    const struct process_spawn spawn = {
        .argv = run->options->argv,
        .env = run->options->env,
        .directory = run->options->directory,
        .standard = {in >= 0 ? in : null_device(), run->ends[PROCESS_STDOUT], run->ends[PROCESS_STDERR]},
        .script = script < 0 ? 0 : script,
        .apart = run->options->apart,
        .until = run->own_deadline,
    };
    run->launched = clock_read(CLOCK_BOOTTIME);
    run->child.pid = process_spawn(&spawn, error);
    if (run->child.pid < 0)
        return -1;
    process_children_started(run->child.pid);
    process_children_expect(&run->child);
    return 0;
}

// What is left for the command's stdin.
static size_t unread(const struct run *run)
{
    return (run->options->hear ? run->answers.size : run->options->input_size) - run->written;
}

static void close_if_over(struct run *run)
{
    if (run->is_over && unread(run) == 0)
        cleanup_close(&run->input);
}

static void write_input(struct run *run)
{
    const char *bytes = run->options->hear ? run->answers.data : run->options->input;
    ssize_t count = write(run->input, bytes + run->written, unread(run));
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count < 0)
        cleanup_close(&run->input); // EPIPE: it reads no more, which is no failure
    else
        run->written += (size_t)count;
    close_if_over(run);
    if (run->options->hear && (run->input < 0 || unread(run) == 0))
        run->answers.size = run->written = 0;
}

// Why the job ends; PROCESS_EXIT: it does not.
static enum process_ending interruption(void)
{
    enum interrupt_reason reason = interrupt_reason();
    if (reason == INTERRUPT_NONE)
        return PROCESS_EXIT;
    return reason == INTERRUPT_TIMEOUT ? PROCESS_DEADLINE : PROCESS_CANCELLED;
}

// Passes on what a command says that is talked with; once it must end, no more. What hears it may run another command
// meanwhile, and a deadline or cancel of that ends this one too, unless it had ended before.
static void hear(void *data, const char *bytes, size_t size)
{
    struct run *run = data;
    if (run->ending != PROCESS_EXIT)
        return;
    bool lives = !run->child.ended;
    enum process_talk talk = run->options->hear(run->options->data, bytes, size, &run->answers);
    if (talk == PROCESS_TALK_FAILED || talk == PROCESS_TALK_END)
        run->ending = talk == PROCESS_TALK_END ? PROCESS_HEARD : PROCESS_TICK;
    else if (lives)
        run->ending = interruption();
    run->is_over |= talk == PROCESS_TALK_OVER;
    close_if_over(run);
    if (run->input < 0)
        run->answers.size = run->written = 0; // nobody reads them
}

// The timeout for poll: milliseconds until a time limit or the next tick.
static int poll_timeout(const struct run *run)
{
    int64_t now = clock_now(), next = clock_sooner(run->own_deadline, idle_deadline(run));
    next = clock_sooner(next, run->next_tick);
    return interrupt_poll_timeout(next > now ? next - now : 0);
}

// Waits for an event; reads output and writes input. Returns how many processes were reaped.
static size_t wait_and_move(void *data, int timeout)
{
    enum { OUT, ERR, IN, CHILDREN, INTERRUPT, ALL };
    struct run *run = data;
    struct process_output_stream *streams = run->output.streams;
    bool is_heard = !run->options->hear || unread(run) < MOST_UNREAD;
    struct pollfd events[ALL] = {
        [OUT] = {.fd = is_heard ? streams[PROCESS_STDOUT].fd : -1, .events = POLLIN},
        [ERR] = {.fd = streams[PROCESS_STDERR].fd, .events = POLLIN},
        [IN] = {.fd = unread(run) > 0 ? run->input : -1, .events = POLLOUT},
        [CHILDREN] = {.fd = process_children_fd(), .events = POLLIN},
        [INTERRUPT] = {.fd = run->ending == PROCESS_EXIT ? interrupt_fd() : -1, .events = POLLIN},
    };
    int ready = poll(events, ALL, timeout);
    if (ready <= 0)
        return ready < 0 ? process_children_reap() : 0; // most likely SIGCHLD interrupted it
    if (events[OUT].revents)
        process_output_read(&run->output, PROCESS_STDOUT); // first, so that the last output on stderr stays last
    if (events[ERR].revents)
        process_output_read(&run->output, PROCESS_STDERR);
    if ((events[OUT].revents | events[ERR].revents) & POLLIN)
        run->heard = clock_now();
    if (events[IN].revents)
        write_input(run);
    return events[CHILDREN].revents ? process_children_reap() : 0;
}

static uint64_t unseen(const struct run *run)
{
    return run->output.both.total - run->output.seen;
}

// Calls tick with what was printed since its last call.
static bool call_tick(struct run *run)
{
    cleanup_buffer struct buffer news = {0};
    uint64_t missing = process_output_news(&run->output, run->options->whole_news, &news);
    return run->options->tick(run->options->data, news.data, news.size, missing);
}

// Ticks if that is due: after an interval, or, where no news may be left out, when there are many.
static void tick(struct run *run, int64_t now)
{
    bool is_full = run->options->tick && run->options->whole_news && unseen(run) >= PROCESS_OUTPUT_NEWS;
    if (now < run->next_tick && !is_full)
        return;
    if (run->options->hear)
        hear(run, NULL, 0);
    if (run->ending == PROCESS_EXIT && run->options->tick && !call_tick(run))
        run->ending = PROCESS_TICK;
    run->next_tick = clock_now() + TICK_INTERVAL;
}

// Ticks once more with what came after the last tick. But if the command ended before any news were passed, what it
// printed is in the outcome, and no news.
static bool tick_at_end(struct run *run)
{
    bool is_heard = run->output.seen > 0 || run->options->whole_news;
    if (!run->options->tick || !is_heard || run->ending == PROCESS_TICK || unseen(run) == 0)
        return true;
    return call_tick(run);
}

// Why the command must end now; PROCESS_EXIT: it may run on.
static enum process_ending reason_to_end(struct run *run)
{
    int64_t now = clock_now();
    enum process_ending ending = interruption();
    if (ending != PROCESS_EXIT)
        return ending;
    if (now >= run->own_deadline)
        return PROCESS_TIMEOUT;
    if (now >= idle_deadline(run))
        return PROCESS_IDLE;
    if (run->options->end_at_limit && run->output.both.total > run->output.limit)
        return PROCESS_OUTPUT_LIMIT;
    tick(run, now);
    return run->ending;
}

// A deadline or cancel also ends what earlier commands left.
static void end_early(struct run *run)
{
    bool all = run->ending == PROCESS_DEADLINE || run->ending == PROCESS_CANCELLED;
    int64_t grace = all ? GRACE : clock_sooner(run->options->grace, GRACE);
    const struct process_tree tree = {
        .spared = all ? NULL : &run->spared,
        .until = all ? clock_now() + grace + LAST_PATIENCE : INT64_MAX,
    };
    if (all)
        ending_begun();
    process_tree_end(&tree, grace, wait_and_move, run);
}

// Processes that outlive their command may still hold the pipes.
static void follow(struct run *run)
{
    uint64_t started = run->options->began ? process_stat_started(run->child.pid, run->launched) : 0;
    if (started && !run->options->began(run->options->data, run->child.pid, started))
        run->ending = PROCESS_TICK;
    while (run->ending == PROCESS_EXIT && !run->child.ended && (run->ending = reason_to_end(run)) == PROCESS_EXIT)
        wait_and_move(run, poll_timeout(run));
    if (run->ending != PROCESS_EXIT)
        end_early(run);
    close_ends(run);
    process_output_drain(&run->output, run->ending == PROCESS_EXIT ? LINGER : 0);
}

static int fill_outcome(struct run *run, struct process_outcome *outcome, struct error *error)
{
    const struct process_child *child = &run->child;
    bool exited = child->ended && WIFEXITED(child->status);
    *outcome = (struct process_outcome){
        .ending = run->ending,
        .exit_code = exited ? WEXITSTATUS(child->status) : -1,
        .signal = child->ended && WIFSIGNALED(child->status) ? WTERMSIG(child->status) : 0,
        .duration = clock_now() - run->started,
        .cpu_time = process_children_cpu_time(&child->usage),
        .max_rss = (uint64_t)child->usage.ru_maxrss * PROCESS_CHILDREN_RSS_UNIT,
    };
    if (process_output_take(&run->output, outcome->texts) == 0 &&
        process_output_show(&run->output, &outcome->output, &outcome->tail, &outcome->missing) == 0)
        return 0;
    process_outcome_free(outcome);
    return error_memory(error, "cannot keep the output of %s", run->options->argv[0]);
}

static void release(struct run *run)
{
    cleanup_close(&run->input);
    close_ends(run);
    process_output_free(&run->output);
    buffer_free(&run->answers);
    process_pids_free(&run->spared);
    if (run->child.pid > 0)
        process_children_forget(&run->child);
}

int process_run(const struct process_options *options, struct process_outcome *outcome, struct error *error)
{
    __attribute__((cleanup(release))) struct run run = {
        .options = options, .ends = {-1, -1}, .input = -1, .is_over = !options->hear, .started = clock_now()};
    run.output.limit = options->output_limit;
    run.output.spool = options->spool;
    run.output.hear = options->hear ? hear : NULL;
    run.output.data = &run;
    for (int i = 0; i < PROCESS_STREAMS; i++)
        run.output.streams[i].fd = run.output.streams[i].text.spool.fd = -1;
    run.own_deadline = clock_after(run.started, options->timeout);
    run.heard = run.started;
    run.next_tick = options->tick || options->hear ? run.started : INT64_MAX; // the first as soon as the command runs
    if (process_children_watch(error) < 0)
        return -1;
    if (process_children_any()) {
        process_children_reap();
        process_children_own(&run.spared);
    }
    if (start(&run, error) < 0)
        return -1;
    close_if_over(&run);
    follow(&run);
    if (!tick_at_end(&run))
        run.ending = PROCESS_TICK;
    return fill_outcome(&run, outcome, error);
}

void process_outcome_free(struct process_outcome *outcome)
{
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        cleanup_close(&outcome->texts[i].spool.fd);
        buffer_free(&outcome->texts[i].text);
    }
    buffer_free(&outcome->output);
    buffer_free(&outcome->tail);
}

static size_t wait_for_children(void *unused, int milliseconds)
{
    (void)unused;
    process_children_wait(milliseconds);
    return process_children_reap();
}

size_t process_finish(int64_t grace, int64_t until, struct process_left *left)
{
    const struct process_tree everything = {.until = until};
    cleanup_process_pids struct process_pids pids = {0};
    *left = (struct process_left){0};
    if (!process_children_any())
        return 0;
    process_children_watch(NULL); // where that fails, ends are noticed at the latest after the grace period
    process_children_reap();
    size_t count = process_tree_end(&everything, grace, wait_for_children, NULL);
    if (process_children_any())
        process_children_own(&pids); // all that ended were reaped: none of these is a zombie
    *left = (struct process_left){pids.count, pids.count ? pids.items[0] : 0};
    return count;
}

void process_idle(void)
{
    interrupt_ignore_others();
    process_children_watch(NULL);
    while (interrupt_reason() != INTERRUPT_CANCELLED) {
        struct pollfd events[] = {{process_children_fd(), POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
        process_children_reap();
        poll(events, 2, -1);
    }
}
