// SPDX-License-Identifier: Apache-2.0
// The clocks, see clock.h.
#include "core/base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t milliseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_now(void)
{
    return milliseconds(CLOCK_MONOTONIC);
}

int64_t clock_wall(void)
{
    return milliseconds(CLOCK_REALTIME);
}

void clock_timestamp(int64_t wall, char text[CLOCK_TIMESTAMP_SIZE])
{
    static char last[sizeof "2026-01-31T09:05:00"]; // for many events
    static time_t last_seconds = -1;
    const time_t seconds = wall / 1000;
    struct tm parts;
    if (seconds != last_seconds)
        strftime(last, sizeof last, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &parts));
    last_seconds = seconds;
    snprintf(text, CLOCK_TIMESTAMP_SIZE, "%s.%03uZ", last, (unsigned)(wall % 1000));
}
