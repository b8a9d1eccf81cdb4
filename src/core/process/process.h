// SPDX-License-Identifier: Apache-2.0
// Runs commands with limits on time and output; ends every process that they leave. A callback may run another one
// meanwhile; a deadline or cancel of that ends both.
//
// A command gets its own session. If it must end early (its timeouts, the deadline, a cancel, the output limit, a
// tick), it and its descendants get SIGTERM and, `grace` later, SIGKILL; their output until then is kept. A deadline or
// cancel also ends what earlier commands left. Processes left by a command that ends by itself live until
// process_finish. Processes orphaned while a command runs count as its own, even if an earlier one started them.
// process_tree.h says what is weaker without /proc.
//
// This process must be a subreaper or PID 1, ignore SIGPIPE, and have no_new_privs, without which an ordinary user may
// set no seccomp filter (identity_harden does all that). All its children are reaped here, whoever started them. Errors
// are those of error.h. Times are milliseconds, sizes bytes.
#ifndef SBA_CORE_PROCESS_H
#define SBA_CORE_PROCESS_H

#include "core/base/error.h"
#include "core/process/process_output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum process_ending {
    PROCESS_EXIT,         // it ended by itself
    PROCESS_TIMEOUT,      // its own timeout
    PROCESS_IDLE,         // it printed nothing for too long
    PROCESS_DEADLINE,     // the job's
    PROCESS_CANCELLED,    // the job was
    PROCESS_OUTPUT_LIMIT, // it printed more than its limit
    PROCESS_TICK,         // tick, began or hear failed
    PROCESS_HEARD,        // hear has heard enough
};

enum process_talk {
    PROCESS_TALK,       // it goes on
    PROCESS_TALK_OVER,  // the command gets the end of its stdin after the answer
    PROCESS_TALK_END,   // end the command
    PROCESS_TALK_FAILED // end it, as a tick that fails does
};

struct process_options {
    const char *const *argv; // NULL at the end; argv[0] is looked up in PATH of env unless it holds a slash
    const char *const *env;  // "NAME=value", NULL at the end
    int directory;           // the working directory; O_PATH is enough
    const char *input;       // for its stdin; NULL: /dev/null
    size_t input_size;
    const char *script; // for a shell that reads it from descriptor 3, as /proc/self/fd/3; NULL: none
    size_t script_size;
    int64_t timeout;      // INT64_MAX: none
    int64_t idle_timeout; // without output; INT64_MAX: none
    int64_t grace;        // from SIGTERM to SIGKILL, at most 2 s; past a deadline or cancel it is 2 s
    size_t output_limit;  // of stdout and stderr together
    const char *spool;    // where long texts go, as spool_open takes it; NULL: all stay in memory
    bool apart;           // out of reach of other commands: in a Landlock domain of its own, where there is Landlock
    bool end_at_limit;    // past the limit end the command; else read on, and keep no more
    // If not NULL, called once the command runs, then about every 0.1 s; false ends the command. It gets what both
    // streams printed since the last call: all of it (whole_news), or its end, after `missing` bytes that are left out.
    bool (*tick)(void *data, const char *news, size_t size, uint64_t missing);
    bool whole_news;
    // If not NULL, called once the command runs, before tick: its PID, which is its session too, and when it started
    // (as in process_stat.h); not called where /proc does not say that. False ends the command.
    bool (*began)(void *data, pid_t command, uint64_t started);
    // If not NULL, the command is talked with: its stdout is no output, but comes here, and what is appended to *answer
    // goes to its stdin, in place of input. Also called with no bytes, once the command runs and whenever a tick is
    // due. The bytes are valid until it runs another command. A command that leaves 1 MiB of answers unread is not
    // heard until it reads on.
    enum process_talk (*hear)(void *data, const char *bytes, size_t size, struct buffer *answer);
    void *data;
};

struct process_outcome {
    enum process_ending ending;
    int exit_code; // -1: a signal ended it
    int signal;    // 0: it exited, or (with exit_code -1) it could not be ended
    struct process_text texts[PROCESS_STREAMS];
    // Both streams in the order in which they came, as UTF-8. Past the limit, or 1 MiB, output is the head and tail the
    // tail. Empty if only one stream printed and all of it is kept.
    struct buffer output, tail;
    uint64_t missing; // bytes between head and tail
    int64_t duration;
    int64_t cpu_time; // of the command and its waited-for children
    uint64_t max_rss; // as the kernel counts it: at least our own when the command started
};

// Runs a command to its end. On success the caller frees *outcome. Errors: those of process_spawn, "too_many_files",
// "out_of_memory"; then nothing runs.
int process_run(const struct process_options *options, struct process_outcome *outcome, struct error *error);

void process_outcome_free(struct process_outcome *outcome);

// Children that could not be ended: a privileged process left them to us and we may not signal them, or they hang in
// the kernel.
struct process_left {
    size_t count;
    pid_t first; // 0: none
};

// Ends and reaps every descendant: SIGTERM, after the grace period SIGKILL. Those that do not end then are given up 2 s
// after the last end, or at the time until. Returns how many were ended; *left says which were not.
size_t process_finish(int64_t grace, int64_t until, struct process_left *left);

// Reaps adopted children until the interrupt cancels.
void process_idle(void);

#endif
