// SPDX-License-Identifier: Apache-2.0
// The monotonic clock and the wall clock. Nothing here fails.
#ifndef SBA_CORE_CLOCK_H
#define SBA_CORE_CLOCK_H

#include <stdint.h>

// Milliseconds on the monotonic clock.
int64_t clock_now(void);

// Milliseconds of the wall clock since 1970-01-01 UTC.
int64_t clock_wall(void);

// Writes a wall-clock time, 1970 to 9999, as RFC 3339 in UTC: "2026-01-31T09:05:00.123Z". Main thread only.
enum { CLOCK_TIMESTAMP_SIZE = 40 };
void clock_timestamp(int64_t wall, char text[CLOCK_TIMESTAMP_SIZE]);

#endif
