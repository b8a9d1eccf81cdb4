// SPDX-License-Identifier: Apache-2.0
// The clocks, see clock.h.
#include "core/base/clock.h"

#include <string.h>

int64_t clock_read(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_now(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

int64_t clock_wall(void)
{
    return clock_read(CLOCK_REALTIME);
}

void clock_timestamp(int64_t wall, char text[CLOCK_TIMESTAMP_SIZE])
{
    static char last[] = "1970-01-01T00:00:00.000Z"; // many events share its second; printf takes longer than all else
    static time_t last_seconds;
    time_t seconds = wall / 1000;
    struct tm parts;
    if (seconds != last_seconds)
        strftime(last, sizeof last, "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&seconds, &parts));
    last_seconds = seconds;
    int64_t rest = wall % 1000;
    for (int i = 22; i >= 20; i--) { // the three digits before the Z
        last[i] = (char)('0' + rest % 10);
        rest /= 10;
    }
    strcpy(text, last);
}
