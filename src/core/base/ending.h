// SPDX-License-Identifier: Apache-2.0
// The end of a job that cannot end by itself: its main thread hangs past the deadline or a signal, crashes, or is
// refused memory.
//
// The program executes itself, with SBA_END in the environment. The process keeps its PID and its children, and loses
// its threads, locks and memory, whatever state they are in. The new image writes the result from the journal
// (sba.crash_exit). SBA_END names what passes through: our PID, the reason, a signal, and descriptors of the journal
// and of memory with what else it must know. All signals are blocked from before the exec until the handlers of the new
// image stand. Times are milliseconds of clock_now. Before ending_start these functions have no effect.
#ifndef SBA_CORE_ENDING_H
#define SBA_CORE_ENDING_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ENDING_UNWRITABLE = 3 }; // exit status where the result could not be written

// What the image before left.
struct ending {
    char reason[16];         // "timeout", "signal", "crash", "memory"; empty: this is no new image
    int signal;              // the one that cancelled the job; 0: none
    int journal;             // descriptor; -1: none
    const char *information; // NULL: it is lost
    pid_t *commands;         // of ending_commands
    size_t command_count;
};

// Call it once, after interrupt_install. In a new image, sends the signal that ended the job to this process again.
void ending_begin(char **argv);
const struct ending *ending_inherited(void);

// From now on the job ends whatever happens: 2.5 s past the deadline, 5 s past a signal, at a crash. The main thread
// calls it, after the change of user and ending_keep. Without its program file there is no such end: an error.
int ending_start(struct error *error);
void ending_stop(void);

// What the new image gets: a text of any length, and the descriptor of the journal, or -1. Errors: "no_space", ...
int ending_keep(const char *information, int journal, struct error *error);

// And what each command appends to this descriptor before it runs: its PID, for when /proc does not list our children.
// -1: there is none.
int ending_commands(void);

void ending_deadline(int64_t at);

// The main thread ends the job itself: it has 2 s more past the deadline, 2.5 s past a signal.
void ending_begun(void);

// The result is written: if the rest takes too long, or crashes, the program exits with this status.
void ending_written(int status);

// In the new image, in place of ending_start: after 10 s the program exits with this status.
int ending_last(int status, struct error *error);

// Memory was refused: ends the job. Returns if no job runs.
void ending_memory(void);

#endif
