// SPDX-License-Identifier: Apache-2.0
// The children of this process, adopted ones included: notice of their ends, reaping, listing, and what they used. A
// PID cannot be reused before its process is reaped, and only process_children_reap reaps.
#ifndef SBA_CORE_PROCESS_CHILDREN_H
#define SBA_CORE_PROCESS_CHILDREN_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

// A child whose end somebody waits for.
struct process_child {
    pid_t pid; // 0: none
    bool ended;
    int status; // as wait(2) gives it, once ended
    struct rusage usage;
    struct process_child *outer; // whose end somebody waits for since before
};

struct process_pids {
    pid_t *items; // owned
    size_t count;
};

void process_pids_free(struct process_pids *pids);
#define cleanup_process_pids __attribute__((cleanup(process_pids_free)))

// Drops the PID if memory is out: killing repeats until no child is left.
void process_pids_add(struct process_pids *pids, pid_t pid);

bool process_pids_hold(const struct process_pids *pids, pid_t pid);

// Installs the handler of SIGCHLD when it is called first. Errors: "too_many_files", ...
int process_children_watch(struct error *error);

// A descriptor that is readable from the end of a child until process_children_reap or process_children_wait. -1 before
// process_children_watch.
int process_children_fd(void);

// Waits up to that many milliseconds for a child to end. False: none ended since the last call of this or
// process_children_reap.
bool process_children_wait(int milliseconds);

// Whether the process has ended and is not reaped yet, or is not our child.
bool process_children_dead(pid_t pid);

// From here on, *child (its pid is set) is filled when that process is reaped; the last one first is forgotten again.
void process_children_expect(struct process_child *child);
void process_children_forget(struct process_child *child);

// Reaps children that have ended, at most 256; if there are more, the descriptor becomes readable again. Returns how
// many were reaped.
size_t process_children_reap(void);

// Whether there is any child, alive or not yet reaped.
bool process_children_any(void);

// A command has been started: its process group is remembered, for when /proc does not list our children.
void process_children_started(pid_t command);

// Appends our own children, as /proc lists them for each of our threads (threads.h): the launchers start processes, and
// the main thread adopts orphans. If /proc does not list them (not mounted, of another PID namespace, a kernel without
// the lists): the commands whose process groups hold a child of ours.
void process_children_own(struct process_pids *pids);

// Appends the children of another process; none if it is gone, or /proc does not list them.
void process_children_of(pid_t parent, struct process_pids *pids);

enum { PROCESS_CHILDREN_RSS_UNIT = 1024 }; // bytes; ru_maxrss is in KiB

// Call it when the program starts: what the same process used before exec is not counted.
void process_children_usage_begin(void);

// CPU time in milliseconds of this program and its reaped descendants, and the largest resident size of one in bytes.
void process_children_usage(int64_t *cpu_time, uint64_t *most);

// User and system time in milliseconds.
int64_t process_children_cpu_time(const struct rusage *usage);

#endif
