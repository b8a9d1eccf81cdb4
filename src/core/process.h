// SPDX-License-Identifier: Apache-2.0
// Runs one command to its end and collects what it prints. Every wait obeys interrupt.h. Sizes are bytes, times
// milliseconds.
#ifndef SBA_CORE_PROCESS_H
#define SBA_CORE_PROCESS_H

#include "core/buffer.h"
#include "core/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { PROCESS_BLEND_HALF = 8192 - 64 }; // of the interleaved output, at each end; leaves room for the line between

struct process_options {
    char *const *argv;        // see spawn.h
    char *const *environment; //
    int directory;            // descriptor
    const char *input;        // for its stdin; NULL: /dev/null
    size_t input_size;
    int64_t timeout;     // of this command alone; negative: none
    size_t output_limit; // stdout and stderr together
    bool discard;        // past the limit let it run on and only count; else end it
    int (*tick)(void *); // called about every tick_interval; not 0: end the command. May be NULL
    void *tick_context;
    int64_t tick_interval;
};

enum process_end {
    PROCESS_EXIT,         // by itself, or by a signal that was not ours
    PROCESS_TIMEOUT,      // its own timeout
    PROCESS_DEADLINE,     // the job's
    PROCESS_CANCELLED,    // SIGTERM or SIGINT to the runner
    PROCESS_OUTPUT_LIMIT, //
    PROCESS_TICK,         // tick wanted it
};

struct process_stream {
    struct buffer data; // at most output_limit, together with the other stream
    uint64_t seen;      // bytes that were printed
};

struct process_outcome {
    enum process_end end;
    int exit_code; // -1 where a signal ended it
    int signal;    // 0 where it exited
    struct process_stream out, err;
    struct buffer head, tail; // of both as they came, at most PROCESS_BLEND_HALF each
    int64_t duration, cpu_time;
    int64_t max_rss; // bytes
};

// Runs the command. At timeout, deadline, cancel and limit its tree gets SIGTERM and two seconds later SIGKILL; what it
// printed until then is kept. What it left running when it ended by itself lives on until tree_finish. Errors:
// spawn.h's. The outcome is to be freed in any case.
int process_run(const struct process_options *options, struct process_outcome *outcome, struct error *error);

void process_outcome_free(struct process_outcome *outcome);

// Reaps children until SIGTERM or SIGINT comes, without using the processor.
void process_idle(void);

// "SIGKILL" for 9; "SIG42" for numbers without a name. Static; valid until the next call.
const char *process_signal_name(int number);

#endif
