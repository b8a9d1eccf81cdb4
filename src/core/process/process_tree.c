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
    MOST = 4096,        // processes in one walk; the others become our children when their parents end
    CROWD = 64,         // with more than so many, not every single end is handled at once
    QUIET = 10,         // ms of one wait for an end
    NO_PROGRESS = 5000, // ms without an end, after which we give up
    NOT_OURS = 500,     // the same if only the dead are left: another process that a command left traces them
};

// Signals a process with the group that it leads and with its descendants, but for those in *asked, to which it adds
// them. A PID that was listed a moment ago is not another process's yet: they are given out in turn.
static void signal_all(pid_t pid, int number, struct pids *asked)
{
    cleanup_pids struct pids found = {0};
    pids_add(&found, pid);
    for (size_t i = 0; i < found.count && i < MOST; i++) {
        pid = found.items[i];
        children_of(pid, &found);
        if (asked && pids_hold(asked, pid))
            continue;
        kill(pid, number);
        kill(-pid, number); // no group has this number unless the process made it
        if (asked) {
            kill(pid, SIGCONT); // who is stopped does not see the signal
            kill(-pid, SIGCONT);
            pids_add(asked, pid);
        }
    }
}

// Lists the children of the tree. Those that we may not signal are none: a privileged process left them to us.
static void list(const struct tree *tree, struct pids *found)
{
    cleanup_pids struct pids all = {0};
    if (children_any())
        children_own(&all);
    for (size_t i = 0; i < all.count; i++) {
        pid_t pid = all.items[i];
        bool spared = tree->spared && pids_hold(tree->spared, pid);
        if (!spared && (kill(pid, 0) == 0 || errno != EPERM))
            pids_add(found, pid);
    }
}

// Sends SIGTERM to what has not got it. False: there are no children.
static bool terminate(const struct tree *tree, struct pids *asked)
{
    cleanup_pids struct pids children = {0};
    list(tree, &children);
    for (size_t i = 0; i < children.count; i++)
        if (!pids_hold(asked, children.items[i]))
            signal_all(children.items[i], SIGTERM, asked);
    return children.count > 0;
}

// Sends SIGKILL to what lives. As PID 1, to all processes of this PID namespace at once, which no fork escapes.
// Returns how many children live, and in *all how many there are.
static size_t kill_children(const struct tree *tree, size_t *all)
{
    size_t living = 0;
    cleanup_pids struct pids children = {0};
    if (getpid() == 1 && !tree->spared)
        kill(-1, SIGKILL);
    list(tree, &children);
    for (size_t i = 0; i < children.count; i++) {
        pid_t pid = children.items[i];
        if (children_dead(pid)) {
            kill(-pid, SIGKILL); // what is left of its group
            continue;
        }
        signal_all(pid, SIGKILL, NULL);
        living++;
    }
    *all = children.count;
    return living;
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

static size_t reap_all(const struct tree *tree)
{
    size_t count, sum = 0;
    while ((count = children_reap(tree->command)) > 0)
        sum += count;
    return sum;
}

// Kills the tree, one level at a time. Nothing is reaped before all are dead and a second look shows no more of them.
// So no PID is reused, and the dead still count for RLIMIT_NPROC and pids.max: a fork bomb at its limit can fork no
// more, and need not be stopped.
static size_t kill_all(const struct tree *tree)
{
    size_t ended = 0, before = 0, children, living = 1;
    for (int64_t last = clock_now(); clock_now() - last < (living ? NO_PROGRESS : NOT_OURS); before = children) {
        living = kill_children(tree, &children);
        size_t reaped = living == 0 && children == before ? reap_all(tree) : 0;
        ended += reaped;
        if (children == 0)
            break;
        if (reaped > 0 || ((living > 0 || children == before) && wait_for_end(living)))
            last = clock_now();
    }
    return ended;
}

size_t tree_end(const struct tree *tree, int64_t grace, size_t (*wait)(void *data, int milliseconds), void *data)
{
    cleanup_pids struct pids asked = {0};
    size_t ended = 0, reaped = 1;
    for (int64_t began = clock_now(), left; !reaped || terminate(tree, &asked); ended += reaped) {
        left = began + grace - (int64_t)asked.count - clock_now();
        if (left <= 0)
            return ended + kill_all(tree);
        reaped = wait(data, left < INT_MAX ? (int)left : INT_MAX);
    }
    return ended;
}
