// SPDX-License-Identifier: Apache-2.0
// Ends processes with all their descendants, see process_tree.h.
#include "core/process_tree.h"

#include "core/cleanup.h"
#include "core/interrupt.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    DEEPEST = 64,       // levels in one walk; deeper processes become our children when their parents end
    STOP_ROUNDS = 10,   // walks to stop a tree that grows, or that others continue
    FEW = 16,           // so many are reached, however long that takes
    TELLING = 500,      // ms for SIGSTOP to reach more than FEW
    DYING = 1,          // ms for the death of one process
    CROWD = 64,         // with more than so many, not every single end is handled at once
    QUIET = 10,         // ms of one wait for an end
    STUBBORN = 4,       // waits in a row without an end, after which other processes are stopped
    STOPPING = 20,      // ms for stopping them
    NO_PROGRESS = 5000, // ms without an end, after which we give up
};

// One signal that is sent to a tree.
struct walk {
    const struct tree *tree;
    int number;
    int64_t until; // when to stop, on the clock of clock_now
    size_t met;
    bool cut; // it has stopped before its end
};

// A process whose PID cannot be reused: held by a pidfd, or (fd -1) because it is this process or its child.
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

// Whether the signal makes sense in that state.
static bool wants(int number, char state)
{
    return state != 'Z' && state != 'X' && (number != SIGSTOP || (state != 'T' && state != 't'));
}

// Opens the pidfd of a process that was found below parent. After that it must still be a child of parent, and parent
// must still be the same process. False: it is gone, or was never ours.
static bool take_hold(struct held *process, const struct held *parent, struct look *look)
{
    process->fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    return process->fd >= 0 && children_look(process->pid, look) && look->parent == parent->pid &&
           (parent->fd < 0 || deliver(parent, 0) == 0);
}

static bool may_go_on(struct walk *walk)
{
    walk->cut = walk->cut || (walk->met >= FEW && clock_now() >= walk->until);
    return !walk->cut;
}

static size_t signal_below(const struct held *parent, int threads, struct walk *walk, int depth);

// SIGCONT goes from the leaves up: a continued process may end, and its children would be ours before we reach them.
static size_t signal_process(const struct held *process, const struct look *look, struct walk *walk, int depth)
{
    size_t sent = 0;
    walk->met++;
    if (walk->number != SIGCONT && wants(walk->number, look->state))
        sent += deliver(process, walk->number) == 0;
    if (depth < DEEPEST)
        sent += signal_below(process, look->threads, walk, depth + 1);
    if (walk->number == SIGCONT && wants(walk->number, look->state))
        sent += deliver(process, walk->number) == 0;
    return sent;
}

static bool is_spared(const struct tree *tree, pid_t pid)
{
    return tree->spared && pids_hold(tree->spared, pid);
}

static size_t signal_child(pid_t pid, struct walk *walk)
{
    struct held child = {pid, -1};
    struct look look = {.state = '?'};
    if (is_spared(walk->tree, pid))
        return 0;
    children_look(pid, &look);
    return signal_process(&child, &look, walk, 0);
}

static size_t signal_below(const struct held *parent, int threads, struct walk *walk, int depth)
{
    cleanup_pids struct pids pids = {0};
    size_t sent = 0;
    children_of(parent->pid, threads, &pids);
    for (size_t i = 0; i < pids.count && may_go_on(walk); i++) {
        struct held process = {pids.items[i], -1};
        struct look look;
        if (take_hold(&process, parent, &look))
            sent += signal_process(&process, &look, walk, depth);
        cleanup_close(&process.fd);
    }
    return sent;
}

static bool is_running(const struct child *command)
{
    return command && command->pid && !command->ended;
}

// Without the lists of /proc: signals the command's process group and, if nothing is spared, the children that probing
// finds.
static void signal_unlisted(const struct tree *tree, int number, struct pids *children)
{
    const struct child *command = tree->command;
    if (number == SIGSTOP)
        return;
    if (is_running(command))
        kill(-command->pid, number);
    if (tree->spared)
        return;
    children_probe(children);
    for (size_t i = 0; i < children->count; i++)
        if (!command || children->items[i] != command->pid)
            kill(children->items[i], number);
}

// As PID 1, kill(-1) reaches all other processes of this PID namespace at once, and no fork escapes it.
static bool is_everybody(const struct tree *tree)
{
    return !tree->spared && getpid() == 1;
}

// Sends the signal to the tree as it is now. Returns how many got it; 0 if that is not known.
static size_t signal_all(struct walk *walk)
{
    cleanup_pids struct pids pids = {0};
    size_t sent = 0;
    if (is_everybody(walk->tree)) {
        kill(-1, walk->number);
        return 0;
    }
    if (children_own(&pids) < 0)
        signal_unlisted(walk->tree, walk->number, &pids);
    else
        for (size_t i = 0; i < pids.count && may_go_on(walk); i++)
            sent += signal_child(pids.items[i], walk);
    return sent;
}

static void signal_tree(const struct tree *tree, int number)
{
    struct walk walk = {.tree = tree, .number = number, .until = INT64_MAX};
    signal_all(&walk);
}

// Stops all processes, so that none forks or is orphaned between two looks, and none competes for the processor.
// Returns how many there are; -1: more than could be stopped in time.
static int64_t freeze(const struct tree *tree)
{
    const struct child *command = tree->command;
    struct walk walk = {.tree = tree, .number = SIGSTOP, .until = clock_now() + TELLING};
    if (is_running(command))
        kill(-command->pid, SIGSTOP); // most trees are one process group, which this reaches at once
    size_t sent = 1;
    for (int round = 0; round < STOP_ROUNDS && sent > 0; round++) {
        walk.met = 0;
        sent = signal_all(&walk);
    }
    return walk.cut ? -1 : (int64_t)(is_everybody(tree) ? children_census() : walk.met);
}

int64_t tree_terminate(const struct tree *tree, int64_t grace)
{
    int64_t began = clock_now(), count = freeze(tree);
    if (count < 0)
        return began;
    signal_tree(tree, SIGTERM);
    signal_tree(tree, SIGCONT);
    int64_t dying = count * DYING;
    return began + grace - (dying < grace / 2 ? dying : grace / 2);
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
    if (children_own(&pids) < 0)
        return tree->spared;
    for (size_t i = 0; i < pids.count; i++)
        if (!is_left_alone(tree, pids.items[i]))
            return false;
    return true;
}

// Kills a tree, one level at a time: the children of dead processes become ours. Nothing is reaped before all are dead.
// So no PID is reused, and the dead still count for RLIMIT_NPROC and pids.max: a fork bomb at its limit can fork no
// more, and need not be stopped.
struct sweep {
    const struct tree *tree;
    struct pids seen;   // our children at the last look, in the kernel's order: new ones come last
    struct pids killed; // those that were sent SIGKILL
    size_t dead;        // how many of the killed are known to be dead, from the first on
    unsigned waits;     // waits in a row without an end
};

static void sweep_free(struct sweep *sweep)
{
    pids_free(&sweep->seen);
    pids_free(&sweep->killed);
}

// Lists our children. Without /proc that takes long, so it is done only after those found before are dead; of a
// command's tree only the command is listed then.
static void list_children(const struct sweep *sweep, struct pids *pids)
{
    const struct child *command = sweep->tree->command;
    if (children_own(pids) == 0 || sweep->dead < sweep->killed.count)
        return;
    signal_unlisted(sweep->tree, SIGKILL, pids);
    if (sweep->tree->spared && is_running(command))
        pids_add(pids, command->pid);
}

// Kills the children that are new since the last look. Returns how many.
static size_t kill_new(struct sweep *sweep)
{
    struct pids now = {0};
    size_t before = sweep->killed.count;
    list_children(sweep, &now);
    for (size_t i = 0; i < now.count; i++) {
        pid_t pid = now.items[i];
        bool known = i < sweep->seen.count && sweep->seen.items[i] == pid;
        if (!known && !is_spared(sweep->tree, pid) && kill(pid, SIGKILL) == 0)
            pids_add(&sweep->killed, pid);
    }
    pids_free(&sweep->seen);
    sweep->seen = now;
    return sweep->killed.count - before;
}

static bool all_dead(struct sweep *sweep)
{
    while (sweep->dead < sweep->killed.count && children_dead(sweep->killed.items[sweep->dead]))
        sweep->dead++;
    return sweep->dead == sweep->killed.count;
}

// A dead process is not ours to reap while another one that a command left traces it.
static void kill_tracers(const struct sweep *sweep)
{
    for (size_t i = sweep->dead; i < sweep->killed.count; i++) {
        pid_t tracer = children_tracer(sweep->killed.items[i]);
        if (tracer > 0)
            kill(tracer, SIGKILL);
    }
}

// Waits for an end; in a crowd, for some more. After long waits without one, some processes are stopped: they may take
// the time that the killed ones need to die.
static void wait_for_end(struct sweep *sweep)
{
    size_t alive = sweep->killed.count - sweep->dead;
    if (children_wait(QUIET)) {
        sweep->waits = 0;
        if (alive > CROWD)
            poll(NULL, 0, alive < QUIET * CROWD ? (int)(alive / CROWD) : QUIET);
    } else if (++sweep->waits % STUBBORN == 0) {
        struct walk walk = {.tree = sweep->tree, .number = SIGSTOP, .until = clock_now() + STOPPING};
        signal_all(&walk);
        kill_tracers(sweep);
    }
}

// Kills what it finds until all of it is dead, and reaps it. False: there was nothing, or it does not die.
static bool sweep_once(const struct tree *tree, size_t *ended)
{
    __attribute__((cleanup(sweep_free))) struct sweep sweep = {.tree = tree};
    bool over = false;
    for (int64_t last = clock_now(); !over && clock_now() - last < NO_PROGRESS;) {
        size_t before = sweep.dead;
        bool dead = all_dead(&sweep); // before the look: the children of the dead are ours now
        bool found = kill_new(&sweep) > 0;
        over = dead && !found;
        if (found || sweep.dead > before)
            last = clock_now();
        if (!all_dead(&sweep))
            wait_for_end(&sweep);
    }
    size_t count, sum = 0;
    while ((count = children_reap(tree->command)) > 0)
        sum += count;
    *ended += sum;
    return over && sum > 0;
}

static size_t kill_everybody(const struct tree *tree)
{
    size_t ended = 0;
    signal_tree(tree, SIGKILL);
    for (int64_t last = clock_now(); children_any() && clock_now() - last < NO_PROGRESS;) {
        if (!children_wait(QUIET) && tree_gone(tree))
            break;
        size_t count = children_reap(tree->command);
        if (count > 0)
            last = clock_now();
        ended += count;
    }
    return ended;
}

size_t tree_kill(const struct tree *tree)
{
    size_t ended = 0;
    if (is_everybody(tree))
        return kill_everybody(tree);
    while (!tree_gone(tree) && sweep_once(tree, &ended))
        ; // for what became ours meanwhile
    return ended;
}

size_t tree_end(const struct tree *tree, int64_t grace)
{
    size_t ended = 0;
    int64_t until = tree_terminate(tree, grace);
    for (int64_t left; !tree_gone(tree) && (left = until - clock_now()) > 0;) {
        children_wait(left < INT_MAX ? (int)left : INT_MAX);
        ended += children_reap(tree->command);
    }
    return ended + tree_kill(tree);
}
