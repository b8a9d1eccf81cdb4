// SPDX-License-Identifier: Apache-2.0
// Processes that outlived their runner, see process_leftovers.h.
#include "core/process/process_leftovers.h"

#include "core/base/cleanup.h"
#include "core/base/clock.h"
#include "core/process/process_stat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    AGAIN = 10,                     // ms between two looks
    LARGEST_ENVIRONMENT = 16 << 20, // bytes of it that are looked at
    PIECE = 32 << 10,               // bytes that are read at once, a NUL included
};

struct process_runner process_leftovers_self(void)
{
    struct process_runner self = {.pid = getpid()};
    struct process_stat own;
    struct stat status;
    cleanup_fd int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, self.boot_id, sizeof self.boot_id - 1) > 0)
        self.boot_id[strcspn(self.boot_id, "\n")] = '\0';
    self.namespace = stat("/proc/self/ns/pid", &status) < 0 ? 0 : status.st_ino;
    self.started = process_stat_read(self.pid, &own) ? own.started : 0;
    return self;
}

static bool lives(pid_t pid, uint64_t started)
{
    struct process_stat stat;
    return process_stat_read(pid, &stat) && stat.started == started && !stat.is_dead;
}

enum process_life process_leftovers_life(const struct process_runner *runner)
{
    const struct process_runner self = process_leftovers_self();
    if (!*self.boot_id || strcmp(self.boot_id, runner->boot_id) != 0 || !self.namespace ||
        self.namespace != runner->namespace || !self.started || !runner->started)
        return PROCESS_LIFE_UNKNOWN;
    return runner->pid != self.pid && lives(runner->pid, runner->started) ? PROCESS_ALIVE : PROCESS_GONE;
}

void process_leftovers_word(const struct process_runner *self, char word[PROCESS_LEFTOVERS_WORD])
{
    uint64_t random = 0;
    while (getrandom(&random, sizeof random, 0) < 0 && errno == EINTR)
        continue;
    snprintf(word, PROCESS_LEFTOVERS_WORD, "%016" PRIx64 "-%" PRIu64 "-%d-%" PRIu64, random, self->namespace,
             (int)self->pid, self->started);
}

// What a search looks for, and what it goes by.
struct search {
    const struct process_marks *marks;
    struct process_runner self;
    struct process_pids spared; // from which we descend, and ourselves
    struct process_pids killed;
    struct buffer environment; // of one process
};

// Whether the runner that put the word there was of our PID namespace, and is gone.
static bool is_orphaned(const struct search *search, const char *word)
{
    int pid;
    uint64_t namespace, started;
    return sscanf(word, "%*16[0-9a-f]-%" SCNu64 "-%d-%" SCNu64, &namespace, &pid, &started) == 3 && started &&
           namespace == search->self.namespace && !lives(pid, started);
}

static bool is_wanted(const struct search *search, const char *word)
{
    const char *const *wanted = search->marks->words;
    if (!wanted)
        return is_orphaned(search, word);
    while (*wanted && strcmp(*wanted, word) != 0)
        wanted++;
    return *wanted != NULL;
}

// Fills the buffer, with a NUL behind. False: it belongs to another user, or to nobody.
static bool read_environment(pid_t pid, struct buffer *into)
{
    char path[40];
    ssize_t size = 1;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    into->size = 0;
    while (fd >= 0 && size > 0 && into->size < LARGEST_ENVIRONMENT && buffer_reserve(into, PIECE) == 0) {
        size = read(fd, into->data + into->size, PIECE - 1);
        into->size += size > 0 ? (size_t)size : 0;
    }
    if (into->size == 0)
        return false;
    into->data[into->size] = '\0';
    return true;
}

static bool has_word(struct search *search, pid_t pid)
{
    static const char name[] = PROCESS_LEFTOVERS_VARIABLE "=";
    if (!read_environment(pid, &search->environment))
        return false;
    const char *end = search->environment.data + search->environment.size;
    for (const char *at = search->environment.data; at < end; at += strlen(at) + 1)
        if (strncmp(at, name, sizeof name - 1) == 0 && is_wanted(search, at + sizeof name - 1))
            return true;
    return false;
}

// A session keeps its number, and no process gets it as its PID, until its last process has ended. So it is the one
// that we know unless its first process is another one. In a long run a PID may have begun several.
static bool is_in_session(const struct search *search, const struct process_stat *stat)
{
    const struct process_marks *marks = search->marks;
    for (size_t i = 0; i < marks->session_count; i++) {
        const struct process_session *session = &marks->sessions[i];
        struct process_stat first;
        if (session->pid == stat->session && stat->started >= session->started &&
            (!process_stat_read(session->pid, &first) || first.started == session->started))
            return true;
    }
    return false;
}

static bool is_marked(struct search *search, pid_t pid)
{
    struct process_stat stat;
    if (!process_stat_read(pid, &stat) || stat.is_dead)
        return false;
    return is_in_session(search, &stat) || has_word(search, pid);
}

void process_leftovers_sessions(struct process_pids *sessions)
{
    cleanup_directory DIR *directory = opendir("/proc");
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        struct process_stat stat;
        if (pid > 0 && process_stat_read(pid, &stat))
            process_pids_add(sessions, stat.session);
    }
}

// By a descriptor of the process, because its PID may be another's by now. Linux before 5.3 has none.
static bool kill_marked(struct search *search, pid_t pid)
{
    cleanup_fd int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (!is_marked(search, pid))
        return false;
    return (fd < 0 ? kill(pid, SIGKILL) : (int)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0)) == 0;
}

// Those that were found with a mark.
static struct process_left kill_all(struct search *search)
{
    struct process_left found = {0};
    cleanup_directory DIR *directory = opendir("/proc");
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0 || process_pids_hold(&search->spared, pid) || !is_marked(search, pid) || !kill_marked(search, pid))
            continue;
        found = (struct process_left){found.count + 1, pid};
        if (!process_pids_hold(&search->killed, pid))
            process_pids_add(&search->killed, pid);
    }
    return found;
}

static void spare_ancestors(struct search *search)
{
    struct process_stat stat;
    for (pid_t pid = getpid(); pid > 0; pid = stat.parent) {
        process_pids_add(&search->spared, pid);
        if (!process_stat_read(pid, &stat))
            return;
    }
}

size_t process_leftovers_end(const struct process_marks *marks, int64_t milliseconds, struct process_left *left)
{
    struct search search = {.marks = marks, .self = process_leftovers_self()};
    int64_t until = clock_now() + milliseconds;
    *left = (struct process_left){0};
    if (search.self.started)
        spare_ancestors(&search);
    while (search.self.started && (*left = kill_all(&search)).count > 0 && clock_now() < until)
        poll(NULL, 0, AGAIN);
    size_t count = search.killed.count > left->count ? search.killed.count - left->count : 0;
    process_pids_free(&search.spared);
    process_pids_free(&search.killed);
    buffer_free(&search.environment);
    return count;
}
