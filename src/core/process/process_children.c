// SPDX-License-Identifier: Apache-2.0
// The children of this process, see process_children.h.
#include "core/process/process_children.h"

#include "core/base/buffer.h"
#include "core/base/cleanup.h"
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
#include <sys/wait.h>
#include <unistd.h>

enum {
    PATH_SIZE = 64, // of a path in /proc: its two numbers have at most 10 digits
    REAPED_AT_ONCE = 256,
};

static int event_fd = -1;
static long max_rss;

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

bool children_dead(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 || info.si_pid == pid;
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

long children_max_rss(void)
{
    return max_rss;
}

bool children_any(void)
{
    siginfo_t unused;
    return waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

pid_t children_tracer(pid_t pid)
{
    char path[PATH_SIZE], line[256];
    int tracer = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "re");
    while (status && tracer == 0 && fgets(line, sizeof line, status))
        sscanf(line, "TracerPid: %d", &tracer);
    if (status)
        fclose(status);
    return tracer;
}

// The PIDs in /proc are valid for us if it belongs to our PID namespace: then it lists one PID for us, our own.
static bool proc_is_ours(void)
{
    static pid_t known;
    char line[256];
    int ours = 0, inner = 0, count = 0;
    FILE *status = known == getpid() ? NULL : fopen("/proc/self/status", "re");
    if (!status)
        return known == getpid();
    while (count == 0 && fgets(line, sizeof line, status))
        count = sscanf(line, "NSpid: %d %d", &ours, &inner);
    fclose(status);
    if (count == 1 && ours == getpid())
        known = ours;
    return known == getpid();
}

int children_in_list(const char *path, void (*found)(pid_t pid, void *data), void *data)
{
    char text[4096], *end;
    size_t have = 0;
    ssize_t size;
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while ((size = read(fd, text + have, sizeof text - 1 - have)) > 0) {
        have += (size_t)size;
        text[have] = '\0';
        char *from = text;
        for (const char *space; (space = strchr(from, ' '));
             from = end + 1) // a number is complete once a space follows it
            found((pid_t)strtol(from, &end, 10), data);
        have -= (size_t)(from - text);
        memmove(text, from, have);
    }
    return 0;
}

static void add(pid_t pid, void *pids)
{
    pids_add(pids, pid);
}

static int read_thread(pid_t process, int thread, struct pids *pids)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)process, thread);
    return children_in_list(path, add, pids);
}

int children_own(struct pids *pids)
{
    pid_t threads[THREADS_MOST];
    size_t count = proc_is_ours() ? threads_all(threads) : 0;
    for (size_t i = 0; i < count; i++)
        if (read_thread(getpid(), threads[i], pids) < 0)
            return -1;
    return count ? 0 : -1;
}

// Every thread has its own list.
void children_of(pid_t parent, struct pids *pids)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    cleanup_directory DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (atoi(entry->d_name) > 0)
            read_thread(parent, atoi(entry->d_name), pids);
}

// The name, in parentheses, may hold any character. The state and the parent follow the last closing parenthesis.
pid_t children_parent(pid_t pid)
{
    char path[PATH_SIZE], text[512];
    int parent;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[size > 0 ? size : 0] = '\0';
    const char *rest = strrchr(text, ')');
    return rest && sscanf(rest + 1, " %*c %d", &parent) == 1 ? parent : 0;
}
