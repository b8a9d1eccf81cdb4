// SPDX-License-Identifier: Apache-2.0
// The children of this process, see process_children.h.
#include "core/process/process_children.h"

#include "core/base/buffer.h"
#include "core/base/cleanup.h"
#include "core/base/io.h"
#include "core/base/threads.h"
#include "core/process/process_stat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REAPED_AT_ONCE = 256 };

static int event_fd = -1;
static long max_rss; // KiB, of a reaped child or one that it waited for
static int64_t cpu_time_before;
static struct process_pids groups; // of all commands
static struct process_child *expected;

void process_pids_free(struct process_pids *pids)
{
    free(pids->items);
    *pids = (struct process_pids){0};
}

void process_pids_add(struct process_pids *pids, pid_t pid)
{
    pid_t *items = array_grow(pids->items, pids->count, sizeof *items);
    if (!items)
        return;
    pids->items = items;
    items[pids->count++] = pid;
}

bool process_pids_hold(const struct process_pids *pids, pid_t pid)
{
    for (size_t i = 0; i < pids->count; i++)
        if (pids->items[i] == pid)
            return true;
    return false;
}

static void on_child(int unused)
{
    (void)unused;
    int saved = errno;
    uint64_t one = 1;
    io_write(event_fd, &one, sizeof one, IO_HERE);
    errno = saved;
}

// If our parent blocked or ignored SIGCHLD, we would get no notice, or no statuses.
int process_children_watch(struct error *error)
{
    if (event_fd >= 0)
        return 0;
    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd < 0)
        return error_system(error, errno, "cannot watch over processes");
    struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    sigemptyset(&action.sa_mask);
    sigaction(SIGCHLD, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    return 0;
}

int process_children_fd(void)
{
    return event_fd;
}

bool process_children_wait(int milliseconds)
{
    struct pollfd event = {.fd = event_fd, .events = POLLIN};
    if (poll(&event, 1, milliseconds) <= 0)
        return false;
    io_forget(event_fd);
    return true;
}

void process_children_expect(struct process_child *child)
{
    child->outer = expected;
    expected = child;
}

void process_children_forget(struct process_child *child)
{
    expected = child->outer;
}

static void note_end(pid_t pid, int status, const struct rusage *usage)
{
    for (struct process_child *child = expected; child; child = child->outer)
        if (child->pid == pid && !child->ended) {
            child->ended = true;
            child->status = status;
            child->usage = *usage;
        }
}

// The limit keeps an endless stream of ends from holding us here.
size_t process_children_reap(void)
{
    size_t count = 0;
    io_forget(event_fd); // before reaping, so that a later end is noticed again
    while (count < REAPED_AT_ONCE) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &usage);
        if (pid <= 0)
            return count;
        if (WIFSTOPPED(status))
            continue; // it lives: a child that says PTRACE_TRACEME shows us its stops
        if (usage.ru_maxrss > max_rss)
            max_rss = usage.ru_maxrss;
        note_end(pid, status, &usage);
        count++;
    }
    on_child(SIGCHLD);
    return REAPED_AT_ONCE;
}

bool process_children_any(void)
{
    siginfo_t unused;
    return waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

// A stop of a child that we trace (PTRACE_TRACEME) is shown whether we ask for it or not.
static bool is_an_end(const siginfo_t *info)
{
    return info->si_code == CLD_EXITED || info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED;
}

// The end of a child that another process traces is not shown to us until that has seen it.
bool process_children_dead(pid_t pid)
{
    siginfo_t info = {0};
    struct process_stat stat;
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 ||
        (info.si_pid == pid && is_an_end(&info)))
        return true;
    return process_stat_read(pid, &stat) && stat.is_dead;
}

// Every thread has its own list. False: there is none.
static bool add_children_of(pid_t process, int thread, struct process_pids *pids)
{
    char path[64];
    int pid;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)process, thread);
    FILE *list = fopen(path, "re");
    if (!list)
        return false;
    while (fscanf(list, "%d", &pid) == 1)
        process_pids_add(pids, pid);
    fclose(list);
    return true;
}

void process_children_of(pid_t parent, struct process_pids *pids)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    cleanup_directory DIR *directory = process_stat_is_ours() ? opendir(path) : NULL;
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        add_children_of(parent, atoi(entry->d_name), pids);
}

void process_children_started(pid_t command)
{
    process_pids_add(&groups, command);
}

static void add_groups(struct process_pids *pids)
{
    siginfo_t unused;
    for (size_t i = 0; i < groups.count; i++)
        if (waitid(P_PGID, (id_t)groups.items[i], &unused, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0)
            process_pids_add(pids, groups.items[i]);
}

void process_children_own(struct process_pids *pids)
{
    pid_t threads[THREADS_MOST];
    size_t count = process_stat_is_ours() ? threads_all(threads) : 0, i = 0;
    while (i < count && add_children_of(getpid(), threads[i], pids))
        i++;
    if (i == 0)
        add_groups(pids);
}

int64_t process_children_cpu_time(const struct rusage *usage)
{
    struct timeval sum;
    timeradd(&usage->ru_utime, &usage->ru_stime, &sum);
    return (int64_t)sum.tv_sec * 1000 + sum.tv_usec / 1000;
}

static int64_t cpu_time_so_far(void)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return process_children_cpu_time(&own) + process_children_cpu_time(&children);
}

void process_children_usage_begin(void)
{
    cpu_time_before = cpu_time_so_far();
}

void process_children_usage(int64_t *cpu_time, uint64_t *most)
{
    char text[2048] = "";
    cleanup_fd int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC); // its VmHWM counts from exec on
    const char *at = status >= 0 && read(status, text, sizeof text - 1) > 0 ? strstr(text, "\nVmHWM:") : NULL;
    long own = at ? atol(at + strlen("\nVmHWM:")) : 0;
    *cpu_time = cpu_time_so_far() - cpu_time_before;
    *most = (uint64_t)(own > max_rss ? own : max_rss) * PROCESS_CHILDREN_RSS_UNIT;
}
