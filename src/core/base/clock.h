// SPDX-License-Identifier: Apache-2.0
// The monotonic clock and the wall clock. Nothing here fails.
#ifndef SBA_CORE_CLOCK_H
#define SBA_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

// Milliseconds on a clock of the system.
int64_t clock_read(clockid_t clock);

// Milliseconds on the monotonic clock.
int64_t clock_now(void);

// Milliseconds of the wall clock since 1970-01-01 UTC.
int64_t clock_wall(void);

// The moment so many milliseconds after another. INT64_MAX is never, and so is what lies past it.
static inline int64_t clock_after(int64_t time, int64_t milliseconds)
{
    return milliseconds > INT64_MAX - time ? INT64_MAX : time + milliseconds;
}

static inline int64_t clock_sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Writes a wall-clock time, 1970 to 9999, as RFC 3339 in UTC: "2026-01-31T09:05:00.123Z". Main thread only.
enum { CLOCK_TIMESTAMP_SIZE = 40 };
void clock_timestamp(int64_t wall, char text[CLOCK_TIMESTAMP_SIZE]);

#endif
