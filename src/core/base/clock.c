// SPDX-License-Identifier: Apache-2.0
// The clocks, see clock.h.
#include "core/base/clock.h"

#include <time.h>

int64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Writes a number of so many digits, and a character after it. Returns the place after that. printf takes ten times as
// long, and every line of a log has a time.
static char *put_number(char *to, int number, int digits, char after)
{
    for (int i = digits - 1; i >= 0; i--, number /= 10)
        to[i] = (char)('0' + number % 10);
    to[digits] = after;
    return to + digits + 1;
}

void clock_timestamp(int64_t wall, char text[CLOCK_TIMESTAMP_SIZE])
{
    struct tm parts;
    const time_t seconds = wall / 1000;
    gmtime_r(&seconds, &parts);
    text = put_number(text, parts.tm_year + 1900, 4, '-');
    text = put_number(text, parts.tm_mon + 1, 2, '-');
    text = put_number(text, parts.tm_mday, 2, 'T');
    text = put_number(text, parts.tm_hour, 2, ':');
    text = put_number(text, parts.tm_min, 2, ':');
    text = put_number(text, parts.tm_sec, 2, '.');
    *put_number(text, (int)(wall % 1000), 3, 'Z') = '\0';
}
