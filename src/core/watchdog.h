// SPDX-License-Identifier: Apache-2.0
// Ends the job where the main thread does not: 2.5 s past its deadline, or 5 s past a signal, whatever runs. A main
// thread that has noticed that it must end the job has 4.5 s and 7.5 s: it does not hang, but may be slow on a busy
// machine.
//
// A thread of its own waits for that moment. It stops the main thread where it stands, kills every process of the job,
// writes the result that was kept last with the right status, and ends the program. From then on it takes no memory
// and no lock, for the main thread may hold any of them. Once the result is written, it ends the program where the rest
// (the completion report) hangs.
//
// Times are milliseconds of clock_now. Before watchdog_start nothing here has an effect, and nothing fails.
#ifndef SBA_CORE_WATCHDOG_H
#define SBA_CORE_WATCHDOG_H

#include "core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// A result to write. Two of its parts are made when it is written: at `head` the fields from `status` to `duration_ms`
// (each with a comma before it), at `tail` those from `failure_code` to the end of the object.
struct watchdog_result {
    int64_t started_wall; // as clock_wall
    int64_t began;        // as clock_now; WATCHDOG_CONTINUED: the duration is that of the wall clock
    size_t head, tail;
    size_t count;
    struct iovec parts[];
};

#define WATCHDOG_CONTINUED INT64_MIN

// Starts to watch. The result goes to the file at path ("-": stdout), replaced atomically where its directory takes a
// new file. By the main thread, after the change of user. Errors: "out_of_processes", "out_of_memory", ...
int watchdog_start(const char *path, struct error *error);

// The program comes to its end; there is nothing to watch any more.
void watchdog_stop(void);

// What is written where the main thread hangs from now on. The caller keeps it, and what its parts point to, until the
// next call has returned.
void watchdog_keep(struct watchdog_result *result);

// The line that is logged then; one that begins with {"ts":"<RFC 3339>" gets the time of that moment. Copied.
void watchdog_log(const char *line, size_t size);

// The job's deadline.
void watchdog_deadline(int64_t at);

// The main thread is ending the job.
void watchdog_ending(void);

// The result is written, or cannot be: with this status the program ends where it hangs now.
void watchdog_written(int status);

#endif
