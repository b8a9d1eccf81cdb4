// SPDX-License-Identifier: Apache-2.0
// The children of this process, see process_children.h.
#include "core/process/process_children.h"

#include "core/base/buffer.h"
#include "core/base/cleanup.h"
#include "core/base/ending.h"
#include "core/base/threads.h"

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
static struct pids groups; // of all commands

void pids_free(struct pids *pids)
{
    free(pids->items);
    *pids = (struct pids){0};
}

void pids_add(struct pids *pids, pid_t pid)
{
    pid_t *items = array_grow(pids->items, pids->count, sizeof *items);
    if (!items)
        return;
    pids->items = items;
    items[pids->count++] = pid;
}

bool pids_hold(const struct pids *pids, pid_t pid)
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
    ssize_t ignored = write(event_fd, &one, sizeof one);
    (void)ignored;
    errno = saved;
}

// If our parent blocked or ignored SIGCHLD, we would get no notice, or no statuses.
int children_watch(struct error *error)
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

int children_fd(void)
{
    return event_fd;
}

static void forget_notice(void)
{
    uint64_t ends;
    ssize_t ignored = read(event_fd, &ends, sizeof ends);
    (void)ignored;
}

bool children_wait(int milliseconds)
{
    struct pollfd event = {.fd = event_fd, .events = POLLIN};
    if (poll(&event, 1, milliseconds) <= 0)
        return false;
    forget_notice();
    return true;
}

// The limit keeps an endless stream of ends from holding us here.
size_t children_reap(struct child *child)
{
    forget_notice(); // before reaping, so that a later end is noticed again
    for (size_t count = 0; count < REAPED_AT_ONCE; count++) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &usage);
        if (pid <= 0)
            return count;
        if (usage.ru_maxrss > max_rss)
            max_rss = usage.ru_maxrss;
        if (child && pid == child->pid)
            *child = (struct child){.pid = pid, .ended = true, .status = status, .usage = usage};
    }
    on_child(SIGCHLD);
    return REAPED_AT_ONCE;
}

bool children_any(void)
{
    siginfo_t unused;
    return waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

// The PIDs in /proc are valid for us if it belongs to our PID namespace.
static bool proc_is_ours(void)
{
    char link[16];
    ssize_t size = readlink("/proc/self", link, sizeof link - 1);
    link[size > 0 ? size : 0] = '\0';
    return atoi(link) == getpid();
}

// The end of a child that another process traces is not shown to us until that has seen it.
bool children_dead(pid_t pid)
{
    char path[32], state = 0;
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 || info.si_pid == pid)
        return true;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = proc_is_ours() ? fopen(path, "re") : NULL;
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) == EOF)
        state = 0;
    if (file)
        fclose(file);
    return state == 'Z';
}

// Every thread has its own list. False: there is none.
static bool add_children_of(pid_t process, int thread, struct pids *pids)
{
    char path[64];
    int pid;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)process, thread);
    FILE *list = fopen(path, "re");
    if (!list)
        return false;
    while (fscanf(list, "%d", &pid) == 1)
        pids_add(pids, pid);
    fclose(list);
    return true;
}

void children_of(pid_t parent, struct pids *pids)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    cleanup_directory DIR *directory = proc_is_ours() ? opendir(path) : NULL;
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        add_children_of(parent, atoi(entry->d_name), pids);
}

void children_started(pid_t command)
{
    pids_add(&groups, command);
    if (!proc_is_ours())
        ending_command(command);
}

static void add_groups(struct pids *pids)
{
    siginfo_t unused;
    for (size_t i = 0; i < groups.count; i++)
        if (waitid(P_PGID, (id_t)groups.items[i], &unused, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0)
            pids_add(pids, groups.items[i]);
}

void children_own(struct pids *pids)
{
    pid_t threads[THREADS_MOST];
    size_t count = proc_is_ours() ? threads_all(threads) : 0, i = 0;
    while (i < count && add_children_of(getpid(), threads[i], pids))
        i++;
    if (i == 0)
        add_groups(pids);
}

int64_t children_cpu_time(const struct rusage *usage)
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
    return children_cpu_time(&own) + children_cpu_time(&children);
}

void children_usage_begin(void)
{
    cpu_time_before = cpu_time_so_far();
}

void children_usage(int64_t *cpu_time, uint64_t *most)
{
    char text[2048] = "";
    cleanup_fd int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC); // its VmHWM counts from exec on
    const char *at = status >= 0 && read(status, text, sizeof text - 1) > 0 ? strstr(text, "\nVmHWM:") : NULL;
    long own = at ? atol(at + strlen("\nVmHWM:")) : 0;
    *cpu_time = cpu_time_so_far() - cpu_time_before;
    *most = (uint64_t)(own > max_rss ? own : max_rss) * CHILDREN_RSS_UNIT;
}
