// SPDX-License-Identifier: Apache-2.0
// The launchers, see process_launch.h.
#include "core/process/process_launch.h"

#include "core/base/interrupt.h"
#include "core/base/threads.h"
#include "core/process/confine.h"
#include "core/process/confine_calls.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

enum {
    STACK = 256 << 10,
    CHILD_STACK = 64 << 10,
    STOPPED = 100, // ms without exec until a child gets SIGCONT: a command may have stopped it
};

enum { SHARED, APART, LAUNCHERS };

// The mutex guards the fields below. `request` is the main thread's until it is set, then the launcher's until NULL.
struct launcher {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const struct launch *request;
    bool ready;
    volatile pid_t started; // 0: none yet; the kernel fills it in before the child runs
    int error;
    _Alignas(16) char stack[CHILD_STACK];
};

static struct launcher launchers[LAUNCHERS];

ON_FOREIGN_STACK static int run_child(void *request)
{
    const struct launch *launch = request;
    launch->run(launch->data);
    return 0;
}

static void start_child(struct launcher *self)
{
    const int flags = CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD;
    pid_t pid = clone(run_child, self->stack + CHILD_STACK, flags, (void *)self->request, &self->started);
    self->error = pid < 0 ? errno : 0;
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
    threads_join();
    pthread_mutex_lock(&self->mutex);
    self->ready = true;
    for (;;) {
        pthread_cond_signal(&self->changed);
        while (!self->request)
            pthread_cond_wait(&self->changed, &self->mutex);
        pthread_mutex_unlock(&self->mutex);
        if (refused)
            refused = self->error = enter(self);
        if (!refused)
            start_child(self);
        pthread_mutex_lock(&self->mutex);
        self->request = NULL;
    }
    return NULL;
}

static int start_thread(struct launcher *launcher)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_condattr_t clock;
    sigset_t all, before;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&launcher->mutex, NULL);
    pthread_cond_init(&launcher->changed, &clock);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, serve, launcher);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error)
        return error;
    pthread_mutex_lock(&launcher->mutex);
    while (!launcher->ready)
        pthread_cond_wait(&launcher->changed, &launcher->mutex);
    pthread_mutex_unlock(&launcher->mutex);
    return 0;
}

// Both run before the filter is made, because it protects them.
static int prepare(void)
{
    static bool prepared;
    for (int i = 0, error; i < LAUNCHERS; i++)
        if (!launchers[i].ready && (error = start_thread(&launchers[i])))
            return error;
    if (!prepared)
        confine_calls_prepare();
    prepared = true;
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

pid_t launch(const struct launch *launch)
{
    struct launcher *launcher = &launchers[launch->apart ? APART : SHARED];
    errno = prepare();
    if (errno)
        return -1;
    pthread_mutex_lock(&launcher->mutex);
    launcher->started = 0;
    launcher->request = launch;
    pthread_cond_signal(&launcher->changed);
    while (launcher->request)
        if (!wait_for_change(launcher))
            continue_child(launcher, launch->until);
    pthread_mutex_unlock(&launcher->mutex);
    errno = launcher->error;
    return launcher->error ? -1 : launcher->started;
}
