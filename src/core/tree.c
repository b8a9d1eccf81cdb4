// SPDX-License-Identifier: Apache-2.0
// Finds and ends descendants, see tree.h.
#include "core/tree.h"

#include "core/cleanup.h"
#include "core/interrupt.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { FREEZE_ROUNDS = 50, SWEEP_ROUNDS = 2000, PAUSE = 5 };

struct process {
    pid_t pid, parent, session;
    char state;
    bool chosen; // root or one of its descendants
};

struct snapshot {
    struct process *list;
    size_t count, capacity;
};

// Reads /proc/PID/stat, whose second field may hold anything but ends at the last parenthesis.
static bool read_process(int proc, const char *name, struct process *process)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "%s/stat", name);
    cleanup_fd int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (size <= 0)
        return false;
    text[size] = '\0';
    const char *rest = strrchr(text, ')');
    process->pid = (pid_t)atoi(name);
    return rest && sscanf(rest, ") %c %d %*d %d", &process->state, &process->parent, &process->session) == 3;
}

static bool add(struct snapshot *snapshot, const struct process *process)
{
    if (snapshot->count == snapshot->capacity) {
        size_t capacity = snapshot->capacity ? 2 * snapshot->capacity : 256;
        struct process *list = reallocarray(snapshot->list, capacity, sizeof *list);
        if (!list)
            return false;
        snapshot->list = list;
        snapshot->capacity = capacity;
    }
    snapshot->list[snapshot->count++] = *process;
    return true;
}

// Whether /proc speaks of our PID namespace: in that of another, every number means another process.
static bool is_ours(int proc)
{
    char self[16] = "";
    return readlinkat(proc, "self", self, sizeof self - 1) > 0 && atoi(self) == getpid();
}

// All living processes that /proc shows. False where there is no /proc of ours.
static bool take_snapshot(struct snapshot *snapshot)
{
    DIR *folder = opendir("/proc");
    if (!folder)
        return false;
    bool any = false, ours = is_ours(dirfd(folder));
    for (const struct dirent *entry; ours && (entry = readdir(folder));) {
        struct process process = {0};
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !read_process(dirfd(folder), entry->d_name, &process))
            continue;
        any = true;
        if (process.state != 'Z' && process.state != 'X' && !add(snapshot, &process))
            break;
    }
    closedir(folder);
    return any;
}

static bool is_chosen(const struct snapshot *snapshot, pid_t pid)
{
    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot->list[i].pid == pid)
            return snapshot->list[i].chosen;
    return false;
}

static int by_pid(const void *a, const void *b)
{
    pid_t left = ((const struct process *)a)->pid, right = ((const struct process *)b)->pid;
    return (left > right) - (left < right);
}

static struct process *find(const struct snapshot *snapshot, pid_t pid)
{
    struct process key = {.pid = pid};
    return bsearch(&key, snapshot->list, snapshot->count, sizeof key, by_pid);
}

// Marks root, its descendants and, where root is a command, the members of its session. Parents may stand behind their
// children in the list, so it is gone through until nothing changes.
static void choose(struct snapshot *snapshot, pid_t root)
{
    pid_t self = getpid();
    qsort(snapshot->list, snapshot->count, sizeof *snapshot->list, by_pid);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < snapshot->count; i++) {
            struct process *process = &snapshot->list[i];
            const struct process *parent = process->chosen ? NULL : find(snapshot, process->parent);
            bool below = parent && parent->chosen;
            bool first = root ? process->pid == root || process->session == root : process->parent == self;
            if (!process->chosen && process->pid != self && (below || first))
                process->chosen = changed = true;
        }
    }
}

static int descendants(struct snapshot *snapshot, pid_t root)
{
    if (!take_snapshot(snapshot))
        return -1;
    choose(snapshot, root);
    return 0;
}

// Signals one process of the snapshot. Its number may have become another's since: a pidfd holds whoever has it now,
// and the parent read after that says whether it is still ours.
static bool signal_verified(const struct snapshot *snapshot, const struct process *process, int number)
{
    struct process now = {0};
    char name[16];
    if (process->parent == getpid())
        return kill(process->pid, number) == 0;
    cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    cleanup_fd int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(name, sizeof name, "%d", process->pid);
    if (proc < 0 || !read_process(proc, name, &now))
        return false;
    if (now.parent != getpid() && (now.parent != process->parent || !is_chosen(snapshot, now.parent)))
        return false;
    if (pidfd >= 0)
        return syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0) == 0;
    return kill(process->pid, number) == 0;
}

int tree_signal(pid_t root, int number)
{
    struct snapshot snapshot = {0};
    int reached = 0;
    if (descendants(&snapshot, root) < 0) {
        if (getpid() == 1 && !root)
            reached = kill(-1, number) == 0;
        else if (root)
            reached = kill(-root, number) == 0;
    }
    for (size_t i = 0; i < snapshot.count; i++)
        if (snapshot.list[i].chosen)
            reached += signal_verified(&snapshot, &snapshot.list[i], number);
    free(snapshot.list);
    return reached;
}

bool tree_alive(pid_t root)
{
    struct snapshot snapshot = {0};
    bool alive = false;
    if (descendants(&snapshot, root) < 0)
        alive = kill(-root, 0) == 0;
    for (size_t i = 0; i < snapshot.count && !alive; i++)
        alive = snapshot.list[i].chosen;
    free(snapshot.list);
    return alive;
}

int tree_reap(pid_t spared)
{
    int count = 0;
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0 || info.si_pid == spared)
            return count;
        if (waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG) == 0)
            count++;
    }
}

static bool childless(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

// Stops everyone before anyone is killed: who runs on could fork faster than the sweep goes.
static void freeze(void)
{
    int before = -1, stopped = 0;
    for (int round = 0; round < FREEZE_ROUNDS && stopped != before; round++) {
        before = stopped;
        stopped = tree_signal(0, SIGSTOP);
    }
}

int tree_finish(int grace)
{
    int ended = tree_reap(0);
    if (childless())
        return 0;
    if (grace > 0) {
        tree_signal(0, SIGTERM);
        tree_signal(0, SIGCONT); // a stopped process would not hear it
    }
    for (int64_t end = interrupt_now() + grace; !childless() && interrupt_now() < end;) {
        poll(NULL, 0, PAUSE);
        ended += tree_reap(0);
    }
    for (int round = 0; !childless() && round < SWEEP_ROUNDS; round++) {
        freeze();
        tree_signal(0, SIGKILL);
        ended += tree_reap(0);
        if (!childless())
            poll(NULL, 0, round ? PAUSE : 1);
        ended += tree_reap(0);
    }
    return ended;
}
