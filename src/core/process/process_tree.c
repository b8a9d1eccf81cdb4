// SPDX-License-Identifier: Apache-2.0
// Ends processes with all their descendants, see process_tree.h.
#include "core/process/process_tree.h"

#include "core/base/cleanup.h"
#include "core/base/interrupt.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DEEPEST = 64,      // levels in one walk; deeper processes become our children when their parents end
    ASKED_MOST = 4096, // processes that get SIGTERM; the others are killed
    ASKING = 500,      // ms for SIGTERM to reach more than FEW
    FEW = 16,
    DYING = 1,          // ms for the death of one process
    CROWD = 64,         // with more than so many, not every single end is handled at once
    QUIET = 10,         // ms of one wait for an end
    STUBBORN = 4,       // waits in a row without an end, after which other processes are stopped
    STOPPING = 20,      // ms for stopping them
    NO_PROGRESS = 5000, // ms without an end, after which we give up
};

// One signal that is sent to a tree.
struct walk {
    int number;
    struct pids *asked; // those that need no SIGTERM any more; NULL: another signal
    int64_t until;      // when to stop, on the clock of clock_now
};

// A process whose PID cannot be reused: held by a pidfd, or (fd -1) because it is our child.
struct held {
    pid_t pid;
    int fd;
};

static int deliver(const struct held *to, int number)
{
    if (to->fd < 0)
        return kill(to->pid, number);
    return (int)syscall(SYS_pidfd_send_signal, to->fd, number, NULL, 0);
}

// Opens the pidfd of a process that was found below parent. After that it must still be a child of parent, and parent
// must still be the same process. False: it is gone, or was never ours.
static bool take_hold(struct held *process, const struct held *parent)
{
    process->fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    return process->fd >= 0 && children_parent(process->pid) == parent->pid &&
           (parent->fd < 0 || deliver(parent, 0) == 0);
}

static bool may_go_on(const struct walk *walk)
{
    size_t count = walk->asked ? walk->asked->count : FEW;
    return count < FEW || (count < ASKED_MOST && clock_now() < walk->until);
}

// SIGCONT, for who is stopped does not see SIGTERM.
static void signal_one(const struct held *process, const struct walk *walk)
{
    if (walk->asked && pids_hold(walk->asked, process->pid))
        return;
    deliver(process, walk->number);
    if (!walk->asked)
        return;
    deliver(process, SIGCONT);
    pids_add(walk->asked, process->pid);
}

static void signal_with_descendants(const struct held *process, const struct walk *walk, int depth)
{
    cleanup_pids struct pids below = {0};
    signal_one(process, walk);
    if (depth < DEEPEST)
        children_of(process->pid, &below);
    for (size_t i = 0; i < below.count && may_go_on(walk); i++) {
        struct held child = {below.items[i], -1};
        if (take_hold(&child, process))
            signal_with_descendants(&child, walk, depth + 1);
        cleanup_close(&child.fd);
    }
}

static bool is_spared(const struct tree *tree, pid_t pid)
{
    return tree->spared && pids_hold(tree->spared, pid);
}

static bool is_running(const struct child *command)
{
    return command && command->pid && !command->ended;
}

// As PID 1, kill(-1) reaches all other processes of this PID namespace at once, and no fork escapes it.
static bool is_everybody(const struct tree *tree)
{
    return !tree->spared && getpid() == 1;
}

// The process groups of all commands, for when /proc does not list our children.
static struct pids groups;

static bool has_child_of_ours(pid_t group)
{
    siginfo_t unused;
    return waitid(P_PGID, (id_t)group, &unused, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

static void signal_group(pid_t group, int number) // 1: everybody
{
    kill(-group, number);
    if (number == SIGTERM)
        kill(-group, SIGCONT);
}

// Without the lists of /proc: the group of the command; if nothing is spared, those of all commands.
static void signal_groups(const struct tree *tree, int number)
{
    if (is_running(tree->command))
        signal_group(tree->command->pid, number);
    for (size_t i = 0; !tree->spared && i < groups.count; i++)
        if (has_child_of_ours(groups.items[i]))
            signal_group(groups.items[i], number);
}

void tree_began(pid_t command)
{
    pids_add(&groups, command);
}

// Sends a signal to all processes at once, where that can be done or nothing else can. False: they are to be taken one
// by one, and these are our children.
static bool signal_together(const struct tree *tree, int number, struct pids *children)
{
    bool everybody = is_everybody(tree);
    if (!everybody && children_own(children) == 0)
        return false;
    if (everybody)
        signal_group(1, number);
    else
        signal_groups(tree, number);
    return true;
}

static bool signal_each(const struct tree *tree, const struct walk *walk)
{
    cleanup_pids struct pids pids = {0};
    if (signal_together(tree, walk->number, &pids))
        return false;
    for (size_t i = 0; i < pids.count && may_go_on(walk); i++)
        if (!is_spared(tree, pids.items[i]))
            signal_with_descendants(&(struct held){pids.items[i], -1}, walk, 0);
    return true;
}

int64_t tree_terminate(struct tree *tree, int64_t grace)
{
    const struct walk walk = {SIGTERM, &tree->asked, clock_now() + ASKING};
    tree->all_asked = tree->all_asked || !signal_each(tree, &walk);
    int64_t dying = (int64_t)tree->asked.count * DYING;
    return !may_go_on(&walk) ? 0 : grace - (dying < grace / 2 ? dying : grace / 2);
}

// Whether the tree does not end this child: it is spared, or a privileged process left it to us.
static bool is_left_alone(const struct tree *tree, pid_t pid)
{
    return is_spared(tree, pid) || (kill(pid, 0) < 0 && errno == EPERM);
}

bool tree_gone(const struct tree *tree)
{
    cleanup_pids struct pids pids = {0};
    if (!children_any())
        return true;
    if (is_running(tree->command))
        return false;
    if (children_own(&pids) < 0) {
        bool any = is_everybody(tree);
        for (size_t i = 0; !tree->spared && i < groups.count; i++)
            any = any || has_child_of_ours(groups.items[i]);
        return !any;
    }
    for (size_t i = 0; i < pids.count; i++)
        if (!is_left_alone(tree, pids.items[i]))
            return false;
    return true;
}

// Sends SIGKILL to the children that live. Returns how many do.
static size_t kill_living(const struct tree *tree, const struct pids *children)
{
    size_t living = 0;
    for (size_t i = 0; i < children->count; i++) {
        pid_t pid = children->items[i];
        living += !is_spared(tree, pid) && !children_dead(pid) && kill(pid, SIGKILL) == 0;
    }
    return living;
}

static bool descends_from_us(pid_t pid)
{
    for (int i = 0; i < DEEPEST && pid > 1 && pid != getpid(); i++)
        pid = children_parent(pid);
    return pid == getpid();
}

// After long waits without an end: some processes may take the time that the killed ones need to die, and a dead one is
// not ours to reap while another one that a command left traces it. A tracer from outside is left alone.
static void help_to_die(const struct tree *tree, const struct pids *children)
{
    const struct walk walk = {SIGSTOP, NULL, clock_now() + STOPPING};
    signal_each(tree, &walk);
    for (size_t i = 0; i < children->count; i++) {
        pid_t tracer = is_spared(tree, children->items[i]) ? 0 : children_tracer(children->items[i]);
        if (tracer > 0 && tracer != getpid() && descends_from_us(tracer))
            kill(tracer, SIGKILL);
    }
}

// Waits for an end; in a crowd, for some more. False: there was none.
static bool wait_for_end(size_t living)
{
    if (!children_wait(QUIET))
        return false;
    if (living > CROWD)
        poll(NULL, 0, living < QUIET * CROWD ? (int)(living / CROWD) : QUIET);
    return true;
}

// Kills the tree, one level at a time: the children of dead processes become ours. Nothing is reaped before all are
// dead. So no PID is reused, and the dead still count for RLIMIT_NPROC and pids.max: a fork bomb at its limit can fork
// no more, and need not be stopped. Ends when a second look shows no more of them, or when they do not die.
static void kill_levels(const struct tree *tree)
{
    cleanup_pids struct pids before = {0};
    unsigned waits = 0;
    for (int64_t last = clock_now(); clock_now() - last < NO_PROGRESS;) {
        cleanup_pids struct pids children = {0};
        if (signal_together(tree, SIGKILL, &children))
            return;
        size_t living = kill_living(tree, &children);
        if (living == 0 && children.count == before.count)
            return;
        if (living > 0 && wait_for_end(living))
            waits = 0, last = clock_now();
        else if (living > 0 && ++waits % STUBBORN == 0)
            help_to_die(tree, &children);
        pids_free(&before);
        before = children;
        children = (struct pids){0};
    }
}

static size_t reap_all(const struct tree *tree)
{
    size_t count, sum = 0;
    while ((count = children_reap(tree->command)) > 0)
        sum += count;
    return sum;
}

size_t tree_kill(const struct tree *tree)
{
    size_t ended = 0;
    for (int64_t last = clock_now(); !tree_gone(tree) && clock_now() - last < NO_PROGRESS;) {
        kill_levels(tree);
        size_t count = reap_all(tree);
        if (count > 0)
            last = clock_now();
        else
            children_wait(QUIET);
        ended += count;
    }
    return ended;
}

size_t tree_end(struct tree *tree, int64_t grace)
{
    size_t ended = 0;
    int64_t began = clock_now();
    while (!tree_gone(tree)) {
        int64_t left = began + tree_terminate(tree, grace) - clock_now();
        if (left <= 0)
            break;
        children_wait(left < INT_MAX ? (int)left : INT_MAX);
        ended += children_reap(tree->command);
    }
    return ended + tree_kill(tree);
}

void tree_free(struct tree *tree)
{
    pids_free(&tree->asked);
}
