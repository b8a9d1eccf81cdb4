// SPDX-License-Identifier: Apache-2.0
// The children of this process, those included that it adopts as subreaper or PID 1: notice of their ends, reaping,
// listing. While a child is not reaped its number cannot come to mean another process, and only children_reap reaps.
#ifndef SBA_CORE_PROCESS_CHILDREN_H
#define SBA_CORE_PROCESS_CHILDREN_H

#include "core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

// A child whose end somebody waits for.
struct child {
    pid_t pid; // 0: none
    bool ended;
    int status; // as wait(2) gives it, once ended
    struct rusage usage;
};

struct pids {
    pid_t *items; // owned
    size_t count;
    size_t capacity;
};

void pids_free(struct pids *pids);
#define cleanup_pids __attribute__((cleanup(pids_free)))

// What does not fit in memory is left out: whoever kills looks again until nothing is left.
void pids_add(struct pids *pids, pid_t pid);

bool pids_hold(const struct pids *pids, pid_t pid);

// Installs the handler of SIGCHLD, the first time it is called. Errors: "too_many_files", ...
int children_watch(struct error *error);

// A descriptor that polls readable after a child has ended, until children_reap or children_wait. -1 before
// children_watch.
int children_fd(void);

// Waits at most so many milliseconds for a child to end; false where none did since this or children_reap was called.
bool children_wait(int milliseconds);

// Whether a child has ended and waits to be reaped, or is none of ours.
bool children_dead(pid_t pid);

// Reaps children that have ended, at most 256: where there are more, the descriptor polls readable again. What *child
// is waiting for is noted there (NULL: nobody waits). Returns how many.
size_t children_reap(struct child *child);

// The largest that a reaped child, or one that it waited for, ever was: KiB in memory.
long children_max_rss(void);

// Whether there is any child, alive or not yet reaped.
bool children_any(void);

// Appends the children that a process of so many threads (0: not known) has now, by /proc. 0; -1 where /proc cannot
// tell (not mounted, of another PID namespace, a kernel without the lists) or the process is gone.
int children_of(pid_t parent, int threads, struct pids *pids);

// Appends our own children, or some of them, without /proc: asks the kernel about every number between ours and the
// newest; where that finds none, about every number there is, which takes a good part of a second.
void children_probe(struct pids *pids);

// How many processes there are in this PID namespace, by /proc; 0 where it cannot tell.
size_t children_census(void);

struct look {
    pid_t parent;
    char state; // as in ps(1): 'R', 'T', 'Z', ...
    int threads;
};

// What /proc says of a process. false where it cannot tell.
bool children_look(pid_t pid, struct look *look);

#endif
