// SPDX-License-Identifier: Apache-2.0
// Ends the job if the main thread does not: 2.5 s past the deadline, or 5 s past a signal. If the main thread has begun
// to end the job, it has 4.5 s and 7.5 s: it does not hang, but may be slow on a busy machine.
//
// A separate thread waits for that moment. It stops the main thread, kills every process of the job, writes the result
// that was kept last with the right status, and ends the program. It allocates no memory and takes no lock then,
// because the main thread may hold any lock. After the result is written, it ends the program if the rest (the
// completion report) hangs.
//
// Times are milliseconds of clock_now. Before watchdog_start, these functions have no effect and cannot fail.
#ifndef SBA_CORE_WATCHDOG_H
#define SBA_CORE_WATCHDOG_H

#include "core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// A result to write. Two of its parts are filled in when it is written: `head` with the fields from `status` to
// `duration_ms` (a comma before each), `tail` with those from `failure_code` to the end of the object.
struct watchdog_result {
    int64_t started_wall; // as clock_wall
    int64_t began;        // as clock_now; WATCHDOG_CONTINUED: take the duration from the wall clock
    size_t head, tail;
    size_t count;
    struct iovec parts[];
};

#define WATCHDOG_CONTINUED INT64_MIN

// Starts to watch. The result goes to the file at path ("-": stdout), which is replaced atomically if its directory
// takes a new file. The main thread calls this, after the change of user. Errors: "out_of_processes", "out_of_memory",
// ...
int watchdog_start(const char *path, struct error *error);

// Stops watching: the program ends by itself.
void watchdog_stop(void);

// Sets the result that is written if the main thread hangs from now on. It, and what its parts point to, must live
// until the next call has returned.
void watchdog_keep(struct watchdog_result *result);

// Sets the line that is logged then. If it begins with {"ts":"<RFC 3339>", it gets the time of that moment. Copied.
void watchdog_log(const char *line, size_t size);

// Sets the job's deadline.
void watchdog_deadline(int64_t at);

// Says that the main thread is ending the job.
void watchdog_ending(void);

// Says that the result is written, or cannot be. If the main thread hangs from now on, the program ends with this
// status.
void watchdog_written(int status);

#endif
