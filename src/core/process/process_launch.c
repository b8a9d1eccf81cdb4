// SPDX-License-Identifier: Apache-2.0
// The launchers, see process_launch.h.
#include "core/process/process_launch.h"

#include "core/base/ending.h"
#include "core/base/interrupt.h"
#include "core/base/threads.h"
#include "core/confine/confine.h"
#include "core/confine/confine_calls.h"
#include "core/process/process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// For functions that run on a stack which the sanitizers do not know.
#define ON_FOREIGN_STACK __attribute__((no_sanitize("address", "undefined")))

enum {
    CHILD_STACK = 64 << 10,
    FAILED = 127,  // the exit status of a child that could not start its command
    STOPPED = 100, // ms without exec until a child gets SIGCONT: a command may have stopped it
};

enum { SHARED, APART, LAUNCHERS };

struct request {
    const struct process_spawn *spawn;
    const char *path;
    int commands;         // as ending_commands gives it; -1: /proc lists our children
    volatile int failure; // errno; 0: the child executed the program
};

// The mutex guards the fields below. `request` is the main thread's until it is set, then the launcher's until NULL.
struct launcher {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct request *request;
    volatile pid_t started; // 0: none yet; the kernel fills it in before the child runs
    _Alignas(16) char stack[CHILD_STACK];
};

static struct launcher launchers[LAUNCHERS];

static pid_t runner;

// The signals that this process ignores: a command does not. Those that it handles are reset by exec, and until then
// our handlers leave alone what is no thread of ours.
static int ignored[64];
static size_t ignored_count;

static void find_ignored_signals(void)
{
    for (int number = 1; number <= SIGRTMAX; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            ignored[ignored_count++] = number;
    }
}

ON_FOREIGN_STACK static void reset_signals(void)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    for (size_t i = 0; i < ignored_count; i++)
        sigaction(ignored[i], &standard, NULL);
}

// What the child does until exec. Returns only an errno.
ON_FOREIGN_STACK static int exec_command(const struct request *request)
{
    sigset_t none;
    const struct process_spawn *spawn = request->spawn;
    prctl(PR_SET_PDEATHSIG, SIGKILL); // when the launcher ends, which is when the runner does
    if (getppid() != runner)
        return ESRCH; // it did before
    reset_signals();
    sigemptyset(&none);
    setsid();
    // Before it runs: a crash may come before the main thread knows of it.
    const pid_t own = request->commands < 0 ? 0 : getpid();
    if (own && write(request->commands, &own, sizeof own) < 0)
        return errno;
    if (fchdir(spawn->directory) < 0)
        return errno;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(spawn->standard[fd], fd) < 0)
            return errno;
    // dup2 clears the flag that closes it on exec, unless it is the number already.
    if (spawn->script && (spawn->script == 3 ? fcntl(3, F_SETFD, 0) : dup2(spawn->script, 3)) < 0)
        return errno;
    int refused = spawn->apart && confine_is_on() ? confine_enter() : 0;
    if (refused)
        return refused;
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(request->path, (char *const *)spawn->argv, (char *const *)spawn->env);
    return errno;
}

// Runs in our memory, so it makes only system calls.
ON_FOREIGN_STACK static int run_child(void *data)
{
    struct request *request = data;
    request->failure = exec_command(request);
    _exit(FAILED);
}

static void start_child(struct launcher *self)
{
    const int flags = CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD;
    pid_t pid = clone(run_child, self->stack + CHILD_STACK, flags, self->request, &self->started);
    if (pid < 0)
        self->request->failure = errno;
    self->started = pid; // qemu-user sets it in the child only
}

static int enter(const struct launcher *self)
{
    int refused = confine_calls_known() ? confine_calls_enter() : 0;
    return refused || self == &launchers[APART] || !confine_is_on() ? refused : confine_enter();
}

static void *serve(void *launcher)
{
    struct launcher *self = launcher;
    int refused = -1; // not tried: the filter is made once all threads run
    pthread_mutex_lock(&self->mutex);
    for (;;) {
        pthread_cond_signal(&self->changed);
        while (!self->request)
            pthread_cond_wait(&self->changed, &self->mutex);
        pthread_mutex_unlock(&self->mutex);
        if (refused)
            refused = self->request->failure = enter(self);
        if (!refused)
            start_child(self);
        pthread_mutex_lock(&self->mutex);
        self->request = NULL;
    }
    return NULL;
}

static int start_thread(struct launcher *launcher)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&launcher->mutex, NULL);
    pthread_cond_init(&launcher->changed, &clock);
    return threads_start(serve, launcher, NULL);
}

// Both run before the filter is made, because it protects them.
static int prepare(void)
{
    static int running;
    if (running == LAUNCHERS)
        return 0;
    for (; running < LAUNCHERS; running++) {
        int error = start_thread(&launchers[running]);
        if (error)
            return error;
    }
    confine_begin();
    confine_calls_prepare();
    find_ignored_signals();
    runner = getpid();
    return 0;
}

static void continue_child(const struct launcher *launcher, int64_t until)
{
    bool late = clock_now() >= until || interrupt_reason() != INTERRUPT_NONE;
    if (launcher->started > 0)
        kill(launcher->started, late ? SIGKILL : SIGCONT);
}

static bool wait_for_change(struct launcher *launcher)
{
    int64_t until = clock_now() + STOPPED;
    const struct timespec time = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
    return pthread_cond_timedwait(&launcher->changed, &launcher->mutex, &time) == 0;
}

pid_t process_launch(const struct process_spawn *spawn, const char *path, int *failure)
{
    struct launcher *launcher = &launchers[spawn->apart && confine_is_on() ? APART : SHARED];
    struct request request = {spawn, path, process_stat_is_ours() ? -1 : ending_commands(), 0};
    *failure = prepare();
    if (*failure)
        return -1;
    pthread_mutex_lock(&launcher->mutex);
    launcher->started = 0;
    launcher->request = &request;
    pthread_cond_signal(&launcher->changed);
    while (launcher->request)
        if (!wait_for_change(launcher))
            continue_child(launcher, spawn->until);
    pthread_mutex_unlock(&launcher->mutex);
    *failure = request.failure;
    if (*failure == 0)
        return launcher->started;
    while (launcher->started > 0 && waitpid(launcher->started, NULL, 0) < 0 && errno == EINTR)
        continue;
    return -1;
}
