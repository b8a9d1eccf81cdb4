// SPDX-License-Identifier: Apache-2.0
// Ending processes with all their descendants, see process_tree.h.
#include "core/process_tree.h"

#include "core/cleanup.h"
#include "core/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    DEEPEST = 64,     // levels looked at in one walk; what is below comes up when those above are gone
    STOP_ROUNDS = 20, // walks to stop a tree that grows meanwhile, or is continued by others
    QUIET = 10,       // ms without an end after which the tree is looked at again
    PATIENCE = 5000,  // ms without progress
};

// A process that is being walked: held by its pidfd or, with fd -1, because it is ourselves or our child.
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

// Whether there is something to send: SIGSTOP is for what runs.
static bool wants(int number, char state)
{
    return state != 'Z' && state != 'X' && (number != SIGSTOP || (state != 'T' && state != 't'));
}

// Takes hold of a process that was found below parent: after the pidfd is open, it must still be the child of parent,
// and parent must still be who it was. false: it is gone, or was never ours.
static bool take_hold(struct held *process, const struct held *parent, struct look *look)
{
    process->fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    return process->fd >= 0 && children_look(process->pid, look) && look->parent == parent->pid &&
           (parent->fd < 0 || deliver(parent, 0) == 0);
}

static size_t signal_below(const struct held *parent, int threads, int number, int depth);

// SIGCONT goes from the leaves up: who runs on may end, and its children would be ours before they were reached.
static size_t signal_process(const struct held *process, const struct look *look, int number, int depth)
{
    size_t sent = 0;
    if (number != SIGCONT && wants(number, look->state))
        sent += deliver(process, number) == 0;
    if (depth < DEEPEST)
        sent += signal_below(process, look->threads, number, depth + 1);
    if (number == SIGCONT && wants(number, look->state))
        sent += deliver(process, number) == 0;
    return sent;
}

static size_t signal_child(pid_t pid, const struct tree *tree, int number)
{
    struct held child = {pid, -1};
    struct look look = {.state = '?'};
    if (tree->spared && pids_hold(tree->spared, pid))
        return 0;
    children_look(pid, &look);
    return signal_process(&child, &look, number, 0);
}

static size_t signal_below(const struct held *parent, int threads, int number, int depth)
{
    cleanup_pids struct pids pids = {0};
    size_t sent = 0;
    children_of(parent->pid, threads, &pids);
    for (size_t i = 0; i < pids.count; i++) {
        struct held process = {pids.items[i], -1};
        struct look look;
        if (take_hold(&process, parent, &look))
            sent += signal_process(&process, &look, number, depth);
        cleanup_close(&process.fd);
    }
    return sent;
}

// Where /proc does not tell: the command's process group and, where the tree is everything, our children.
static void signal_unlisted(const struct tree *tree, int number)
{
    const struct child *command = tree->command;
    cleanup_pids struct pids pids = {0};
    if (number == SIGSTOP)
        return;
    if (command && command->pid && !command->ended)
        kill(-command->pid, number);
    if (tree->spared)
        return;
    children_probe(&pids);
    for (size_t i = 0; i < pids.count; i++)
        if (!command || pids.items[i] != command->pid)
            kill(pids.items[i], number);
}

// Sends the signal to the tree as it is now. Returns to how many; 0 where nobody can tell.
static size_t signal_tree(const struct tree *tree, int number)
{
    cleanup_pids struct pids pids = {0};
    size_t sent = 0;
    if (!tree->spared && getpid() == 1) {
        if (number != SIGSTOP)
            kill(-1, number); // everybody in this PID namespace but ourselves, and no fork slips through
        return 0;
    }
    if (children_of(getpid(), 0, &pids) < 0)
        signal_unlisted(tree, number);
    for (size_t i = 0; i < pids.count; i++)
        sent += signal_child(pids.items[i], tree, number);
    return sent;
}

// Stops all, so that nothing forks away or is orphaned between two looks.
static void freeze(const struct tree *tree)
{
    for (int round = 0; round < STOP_ROUNDS && signal_tree(tree, SIGSTOP) > 0;)
        round++;
}

void tree_terminate(const struct tree *tree)
{
    freeze(tree);
    signal_tree(tree, SIGTERM);
    signal_tree(tree, SIGCONT);
}

bool tree_gone(const struct tree *tree)
{
    cleanup_pids struct pids pids = {0};
    if (!children_any())
        return true;
    if (tree->command && tree->command->pid && !tree->command->ended)
        return false;
    if (!tree->spared)
        return false;
    if (children_of(getpid(), 0, &pids) < 0)
        return true;
    for (size_t i = 0; i < pids.count; i++)
        if (!pids_hold(tree->spared, pids.items[i]))
            return false;
    return true;
}

// Reaps until nothing is left or nothing ends any more.
static size_t reap_while_ending(const struct tree *tree, bool *gone)
{
    size_t count = 0;
    do {
        count += children_reap(tree->command);
        *gone = tree_gone(tree);
    } while (!*gone && children_wait(QUIET));
    return count;
}

size_t tree_kill(const struct tree *tree)
{
    bool gone = false;
    size_t ended = 0;
    int64_t last = interrupt_now();
    while (!gone && interrupt_now() - last < PATIENCE) {
        freeze(tree);
        signal_tree(tree, SIGKILL);
        size_t count = reap_while_ending(tree, &gone);
        ended += count;
        if (count > 0)
            last = interrupt_now();
    }
    return ended;
}
