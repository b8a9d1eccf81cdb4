// SPDX-License-Identifier: Apache-2.0
// Running commands: one at a time, to its end, with bounds on time and output; and the end of everything that is left.
//
// A command gets a session of its own. Where it must end early (its timeout, the deadline, a cancel, the output limit)
// it and its descendants get SIGTERM and, 2 s later, SIGKILL; what it printed until then is kept. A deadline or cancel
// ends everything that earlier commands left too. What a command leaves behind that ends by itself lives on until
// process_finish; process_tree.h says what is weaker without /proc. What lost its parent during a command counts as
// that command's, even if an earlier one had left it.
//
// The process must be a subreaper or PID 1 and ignore SIGPIPE (identity_harden). All children of the process are reaped
// here, whoever started them. Errors as error.h has it. Times are milliseconds, sizes bytes.
#ifndef SBA_CORE_PROCESS_H
#define SBA_CORE_PROCESS_H

#include "core/buffer.h"
#include "core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum process_ending {
    PROCESS_EXIT,         // by itself
    PROCESS_TIMEOUT,      // its own timeout
    PROCESS_DEADLINE,     // the job's
    PROCESS_CANCELLED,    // the job was
    PROCESS_OUTPUT_LIMIT, // it printed more than its limit
    PROCESS_TICK,         // tick said no
};

struct process_options {
    const char *const *argv; // NULL at the end; argv[0] is looked up in PATH of env unless it holds a slash
    const char *const *env;  // "NAME=value", NULL at the end
    int directory;           // the working directory, O_PATH will do
    const char *input;       // for its stdin; NULL: /dev/null
    size_t input_size;
    int64_t timeout;     // INT64_MAX: none
    size_t output_limit; // of stdout and stderr together
    bool end_at_limit;   // past the limit end the command; else count what it prints
    // Called once the command runs, then about every 0.1 s, unless NULL; false ends the command. What both streams have
    // printed since the last call comes with it: all of it (whole_news), or the end, where `missing` bytes come before.
    // The first output after a while comes at once.
    bool (*tick)(void *data, const char *news, size_t size, uint64_t missing);
    bool whole_news;
    void *data;
};

struct process_text {
    struct buffer text; // UTF-8, repaired
    bool truncated;
};

struct process_outcome {
    enum process_ending ending;
    int exit_code; // -1: a signal ended it
    int signal;    // 0: it exited; also 0 with exit_code -1 where it could not be ended
    struct process_text out, err;
    // UTF-8; both as they came. Where that is more than the limit, or 1 MiB, output is the head and tail the tail of
    // it. Empty where only one of them printed, and all of it is kept.
    struct buffer output, tail;
    uint64_t missing; // bytes between head and tail
    int64_t duration;
    int64_t cpu_time; // of the command and its waited-for children
    uint64_t max_rss; // as the kernel counts it: never less than our own was when the command started
    // It failed by itself, and meanwhile the kernel killed a process for want of memory (oom.h).
    bool out_of_memory;
};

// Runs a command to its end. *outcome, on success, is the caller's to free. Errors: those of spawn_command,
// "too_many_files", "out_of_memory"; then nothing runs.
int process_run(const struct process_options *options, struct process_outcome *outcome, struct error *error);

void process_outcome_free(struct process_outcome *outcome);

// Children that could not be ended: that we may not signal, because somebody with more rights left them to us, or that
// hang in the kernel.
struct process_left {
    size_t count;
    pid_t first; // 0: none
};

// Ends every descendant: SIGTERM, after grace SIGKILL, until none is left and none is a zombie. Returns how many were
// ended; *left says what was not.
size_t process_finish(int64_t grace, struct process_left *left);

// To be called when the program starts: what was used before, by whoever became this program, is not counted.
void process_begin_usage(void);

// What this program and its waited-for descendants used so far: CPU time, and the largest that one of them was.
void process_usage(int64_t *cpu_time, uint64_t *max_rss);

// Reaps adopted children until the interrupt cancels.
void process_idle(void);

#endif
