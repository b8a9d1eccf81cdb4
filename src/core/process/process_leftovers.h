// SPDX-License-Identifier: Apache-2.0
// Processes that outlived their runner: one that was killed could not end them.
//
// They are found by the word that each run puts into the environment of its commands, CYNODE_RUN, and by the sessions
// that its commands began: some programs overwrite their environment. Who changed user, or has neither the word nor
// such a session, is not found; without a /proc of our PID namespace nobody is.
#ifndef SBA_CORE_PROCESS_LEFTOVERS_H
#define SBA_CORE_PROCESS_LEFTOVERS_H

#include "core/process/process.h"
#include "core/process/process_children.h"

#define PROCESS_LEFTOVERS_VARIABLE "CYNODE_RUN"

// Names one process, also after its PID has been given to another.
struct process_runner {
    pid_t pid;
    uint64_t started;   // as in process_stat.h; 0: unknown
    uint64_t namespace; // number of its PID namespace; 0: unknown
    char boot_id[40];   // of the machine; "": unknown
};

struct process_runner process_leftovers_self(void);

enum process_life { PROCESS_LIFE_UNKNOWN, PROCESS_ALIVE, PROCESS_GONE };
enum process_life process_leftovers_life(const struct process_runner *runner);

// A word of this run, which also says whose it is. Random, so that nobody else has it.
enum { PROCESS_LEFTOVERS_WORD = 80 };
void process_leftovers_word(const struct process_runner *self, char word[PROCESS_LEFTOVERS_WORD]);

struct process_session {
    pid_t pid; // of its first process
    uint64_t started;
};

// Appends the sessions of all processes, one for each process.
void process_leftovers_sessions(struct process_pids *sessions);

struct process_marks {
    const char *const *words; // NULL at the end; NULL: the words of all runners of our PID namespace that are gone
    const struct process_session *sessions;
    size_t session_count;
};

// Kills the processes with these marks, again and again until there are none or that many milliseconds are over; but
// not those from which we descend. Returns how many were killed; *left says which live on.
size_t process_leftovers_end(const struct process_marks *marks, int64_t milliseconds, struct process_left *left);

#endif
