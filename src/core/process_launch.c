// SPDX-License-Identifier: Apache-2.0
// The launcher, see process_launch.h.
#include "core/process_launch.h"

#include "core/cleanup.h"
#include "core/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STACK_SIZE = 64 << 10,
    TRIES = 5,     // for commands may kill it again and again
    STOPPED = 100, // ms without an answer until it gets SIGCONT
};

// Both processes use it in turns: one works while the other waits for its eventfd.
static struct {
    char *stacks; // the launcher's, then its children's
    pid_t runner;
    int process; // pidfd of the launcher; -1: none runs
    int request, reply;
    int alive[2]; // pipe; a child holds the writing end until exec or its end
    int error;    // errno of the request
    void (*run)(void *data);
    void *data;
    pid_t started; // 0: none yet
} launcher = {.process = -1, .request = -1, .reply = -1, .alive = {-1, -1}};

ON_FOREIGN_STACK static int run_child(void *unused)
{
    (void)unused;
    launcher.run(launcher.data);
    return 0;
}

ON_FOREIGN_STACK static void reply(void)
{
    uint64_t one = 1;
    syscall(SYS_write, launcher.reply, &one, sizeof one);
}

ON_FOREIGN_STACK static bool next_request(void)
{
    uint64_t count;
    return syscall(SYS_read, launcher.request, &count, sizeof count) == sizeof count;
}

ON_FOREIGN_STACK void launch_reset_signals(const sigset_t *set)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(set, number) == 1)
            sigaction(number, &standard, NULL);
}

ON_FOREIGN_STACK static int serve(void *unused)
{
    (void)unused;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher.runner) // the runner was killed before the prctl
        return 0;
    sigset_t set;
    sigfillset(&set);
    launch_reset_signals(&set); // our handlers must not run in the launcher
    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    launcher.error = confine_enter();
    reply();
    while (next_request()) {
        const int flags = CLONE_PARENT | CLONE_PARENT_SETTID | CLONE_VM | CLONE_VFORK | SIGCHLD;
        if (clone(run_child, launcher.stacks + (size_t)2 * STACK_SIZE, flags, NULL, &launcher.started) < 0)
            launcher.error = errno;
        reply();
    }
    return 0;
}

static void signal_launcher(int number)
{
    syscall(SYS_pidfd_send_signal, launcher.process, number, NULL, 0);
}

// Waits for the launcher's answer. False: it is gone. A command may have stopped it, hence SIGCONT.
static bool answered(void)
{
    struct pollfd events[] = {{.fd = launcher.reply, .events = POLLIN}, {.fd = launcher.process, .events = POLLIN}};
    uint64_t count;
    while (poll(events, 2, STOPPED) <= 0)
        signal_launcher(SIGCONT);
    return read(launcher.reply, &count, sizeof count) == sizeof count;
}

static bool is_alive(void)
{
    struct pollfd event = {.fd = launcher.process, .events = POLLIN};
    return launcher.process >= 0 && poll(&event, 1, 0) == 0;
}

// New stacks each time: the last child of a killed launcher may still use the old ones.
static bool acquire(void)
{
    void *stacks =
        mmap(NULL, (size_t)2 * STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    launcher.stacks = stacks == MAP_FAILED ? NULL : stacks;
    launcher.request = eventfd(0, EFD_CLOEXEC);
    launcher.reply = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return launcher.stacks && launcher.request >= 0 && launcher.reply >= 0 && pipe2(launcher.alive, O_CLOEXEC) == 0;
}

static void release(void)
{
    cleanup_close(&launcher.process);
    cleanup_close(&launcher.request);
    cleanup_close(&launcher.reply);
    cleanup_close(&launcher.alive[0]);
    cleanup_close(&launcher.alive[1]);
}

static bool start_launcher(void)
{
    sigset_t all, before;
    launcher.runner = getpid();
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = clone(serve, launcher.stacks + STACK_SIZE, CLONE_VM | CLONE_FILES | SIGCHLD, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return false;
    launcher.process = (int)syscall(SYS_pidfd_open, pid, 0);
    if (launcher.process >= 0 && answered() && launcher.error == 0)
        return true;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, __WALL);
    return false;
}

bool launch_prepare(void)
{
    if (is_alive())
        return true;
    launch_end();
    if (confine_abi() >= CONFINE_SIGNALS && acquire() && start_launcher())
        return true;
    release();
    return false;
}

// The launcher was killed before it answered, perhaps by the child. Waits until the child no longer uses our memory.
static void wait_for_child(void)
{
    struct pollfd event = {.fd = launcher.alive[0]};
    cleanup_close(&launcher.alive[1]);
    while (poll(&event, 1, -1) < 0 && errno == EINTR)
        continue;
}

// False: the launcher was killed before it started the child.
static bool ask(void)
{
    uint64_t one = 1;
    launcher.started = launcher.error = 0;
    if (write(launcher.request, &one, sizeof one) != sizeof one)
        return false;
    if (answered())
        return true;
    wait_for_child();
    launch_end();
    return launcher.started > 0;
}

pid_t launch(void (*run)(void *data), void *data)
{
    launcher.run = run;
    launcher.data = data;
    for (int tries = 0; tries < TRIES && launch_prepare(); tries++) {
        if (!ask())
            continue;
        errno = launcher.error;
        return launcher.error ? -1 : launcher.started;
    }
    return errno = EAGAIN, -1;
}

void launch_end(void)
{
    siginfo_t unused;
    if (launcher.process < 0)
        return;
    signal_launcher(SIGKILL);
    while (waitid(P_PIDFD, (id_t)launcher.process, &unused, WEXITED | __WALL) < 0 && errno == EINTR)
        continue;
    release();
}
