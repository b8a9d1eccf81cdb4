// SPDX-License-Identifier: Apache-2.0
// Ends processes with all their descendants, see process_tree.h.
#include "core/process/process_tree.h"

#include "core/base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

enum {
    ASKING = 500,    // ms for SIGTERM to reach all
    KILLING = 100,   // ms for SIGKILL to reach those below
    CROWD = 64,      // with more than so many, not every single end is handled at once
    QUIET = 10,      // ms of one wait for an end
    AT_LEAST = 100,  // ms for those that SIGKILL reaches to end
    PATIENCE = 2000, // ms from the last end, after which those that SIGKILL does not end are given up
    NOT_OURS = 500,  // of patience if only the dead are left: another process that a command left traces them
};

static void signal_one(pid_t pid, int number)
{
    kill(-pid, number); // no group has this number unless the process made it
    if (getpgid(pid) != pid)
        kill(pid, number);
}

// Signals a process with its descendants, but for those in *asked, to which it adds them. A PID that was listed a
// moment ago is not another process's yet: they are given out in turn. False: the time was up.
static bool signal_all(pid_t pid, int number, struct process_pids *asked, int64_t until)
{
    cleanup_process_pids struct process_pids found = {0};
    process_pids_add(&found, pid);
    for (size_t i = 0; i < found.count; i++) {
        pid = found.items[i];
        if (clock_now() >= until)
            return false;
        process_children_of(pid, &found);
        if (asked && process_pids_hold(asked, pid))
            continue;
        signal_one(pid, number);
        if (asked) {
            signal_one(pid, SIGCONT); // who is stopped does not see the signal
            process_pids_add(asked, pid);
        }
    }
    return true;
}

// Lists the children of the tree. Those that we may not signal are none: a privileged process left them to us.
static void list(const struct process_tree *tree, struct process_pids *found)
{
    cleanup_process_pids struct process_pids all = {0};
    if (process_children_any())
        process_children_own(&all);
    for (size_t i = 0; i < all.count; i++) {
        pid_t pid = all.items[i];
        bool spared = tree->spared && process_pids_hold(tree->spared, pid);
        if (!spared && (kill(pid, 0) == 0 || errno != EPERM))
            process_pids_add(found, pid);
    }
}

// Sends SIGTERM to what has not got it. False: not to all, because they use all the processor's time.
static bool terminate(const struct process_pids *children, struct process_pids *asked)
{
    int64_t until = clock_now() + ASKING;
    for (size_t i = 0; i < children->count; i++)
        if (!process_pids_hold(asked, children->items[i]) && !signal_all(children->items[i], SIGTERM, asked, until))
            return false;
    return true;
}

// Sends SIGKILL to the children. As PID 1, to all processes of this PID namespace at once, which no fork escapes.
// Returns how many live, which are the first in the list then.
static size_t kill_children(const struct process_tree *tree, struct process_pids *children)
{
    size_t living = 0;
    if (getpid() == 1 && !tree->spared)
        kill(-1, SIGKILL);
    list(tree, children);
    for (size_t i = 0; i < children->count; i++) {
        pid_t pid = children->items[i];
        signal_one(pid, SIGKILL);
        if (!process_children_dead(pid)) {
            children->items[i] = children->items[living];
            children->items[living++] = pid;
        }
    }
    return living;
}

static void kill_below(const struct process_pids *children, size_t count)
{
    int64_t until = clock_now() + KILLING;
    for (size_t i = 0; i < count && signal_all(children->items[i], SIGKILL, NULL, until); i++)
        continue;
}

// Waits for an end; in a crowd, for some more. False: there was none.
static bool wait_for_end(size_t living)
{
    if (!process_children_wait(QUIET))
        return false;
    if (living > CROWD)
        poll(NULL, 0, living < QUIET * CROWD ? (int)(living / CROWD) : QUIET);
    return true;
}

static size_t reap_all(void)
{
    size_t count, sum = 0;
    while ((count = process_children_reap()) > 0)
        sum += count;
    return sum;
}

// When those that do not end are given up: no later than tree->until, but no sooner than AT_LEAST from now.
static int64_t last_moment(const struct process_tree *tree)
{
    int64_t least = clock_now() + AT_LEAST;
    return tree->until > least ? tree->until : least;
}

// Kills the tree, one level at a time; after a wait in vain, what is below too, for it may take the time that the
// killed ones need to die. Nothing is reaped before all are dead and a second look shows no more of them. So no PID is
// reused, and the dead still count for RLIMIT_NPROC and pids.max: a fork bomb at its limit can fork no more.
static size_t kill_all(const struct process_tree *tree)
{
    size_t ended = 0, before = 0;
    int64_t until = last_moment(tree), progress = clock_now(), patience = PATIENCE;
    while (clock_now() < until && clock_now() - progress < patience) {
        cleanup_process_pids struct process_pids children = {0};
        size_t living = kill_children(tree, &children), reaped = 0;
        bool are_all = children.count == before; // as many as at the look before
        if (living == 0 && are_all)
            reaped = reap_all();
        ended += reaped;
        if (children.count == 0)
            break;
        if (reaped > 0 || ((living > 0 || are_all) && wait_for_end(living)))
            progress = clock_now();
        else
            kill_below(&children, living);
        before = children.count;
        patience = living > 0 ? PATIENCE : NOT_OURS;
    }
    return ended;
}

// Asks all to end, those too that become our children meanwhile, and waits. Adds to *ended how many were reaped. False:
// some live when the grace period is over, or take all the processor's time so that not all could be asked.
static bool ask_all(const struct process_tree *tree, int64_t grace, size_t (*wait)(void *data, int milliseconds),
                    void *data, size_t *ended)
{
    cleanup_process_pids struct process_pids asked = {0};
    int64_t began = clock_now();
    for (;;) {
        cleanup_process_pids struct process_pids children = {0};
        list(tree, &children);
        if (children.count == 0)
            return true;
        if (!terminate(&children, &asked))
            return false;
        int64_t shorter = clock_sooner((int64_t)asked.count, grace / 2);
        size_t reaped = 0;
        while (reaped == 0) {
            int64_t left = began + grace - shorter - clock_now();
            if (left <= 0)
                return false;
            reaped = wait(data, (int)clock_sooner(left, INT_MAX));
        }
        *ended += reaped;
    }
}

size_t process_tree_end(const struct process_tree *tree, int64_t grace, size_t (*wait)(void *data, int milliseconds),
                        void *data)
{
    size_t ended = 0;
    if (!ask_all(tree, grace, wait, data, &ended))
        ended += kill_all(tree);
    return ended;
}
