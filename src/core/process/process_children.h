// SPDX-License-Identifier: Apache-2.0
// The children of this process, adopted ones included: notice of their ends, reaping, listing, and what they used. A
// PID cannot be reused before its process is reaped, and only children_reap reaps.
#ifndef SBA_CORE_PROCESS_CHILDREN_H
#define SBA_CORE_PROCESS_CHILDREN_H

#include "core/base/error.h"

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
};

void pids_free(struct pids *pids);
#define cleanup_pids __attribute__((cleanup(pids_free)))

// Drops the PID if memory is out: killing repeats until no child is left.
void pids_add(struct pids *pids, pid_t pid);

bool pids_hold(const struct pids *pids, pid_t pid);

// Installs the handler of SIGCHLD when it is called first. Errors: "too_many_files", ...
int children_watch(struct error *error);

// A descriptor that is readable from the end of a child until children_reap or children_wait. -1 before children_watch.
int children_fd(void);

// Waits up to that many milliseconds for a child to end. False: none ended since the last call of this or
// children_reap.
bool children_wait(int milliseconds);

// Whether the process has ended and is not reaped yet, or is not our child.
bool children_dead(pid_t pid);

// Reaps children that have ended, at most 256; if there are more, the descriptor becomes readable again. Fills *child
// when that process is reaped (NULL: nobody waits). Returns how many were reaped.
size_t children_reap(struct child *child);

// Whether there is any child, alive or not yet reaped.
bool children_any(void);

// A command has been started: its process group is remembered, for when /proc does not list our children.
void children_started(pid_t command);

// Appends our own children, as /proc lists them for each of our threads (threads.h): the launchers start processes, and
// the main thread adopts orphans. If /proc does not list them (not mounted, of another PID namespace, a kernel without
// the lists): the commands whose process groups hold a child of ours.
void children_own(struct pids *pids);

// Appends the children of another process; none if it is gone, or /proc does not list them.
void children_of(pid_t parent, struct pids *pids);

enum { CHILDREN_RSS_UNIT = 1024 }; // bytes; ru_maxrss is in KiB

// Call it when the program starts: what the same process used before exec is not counted.
void children_usage_begin(void);

// CPU time in milliseconds of this program and its reaped descendants, and the largest resident size of one in bytes.
void children_usage(int64_t *cpu_time, uint64_t *most);

// User and system time in milliseconds.
int64_t children_cpu_time(const struct rusage *usage);

#endif
