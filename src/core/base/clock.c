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

// Writes a number with so many digits, and a character after it. Returns the place after that. printf takes ten times
// as long, and every line of a log has a time.
static char *put_number(char *to, int number, int digits, char after)
{
    for (int i = digits - 1; i >= 0; i--, number /= 10)
        to[i] = (char)('0' + number % 10);
    to[digits] = after;
    return to + digits + 1;
}

// Writes the date that is so many days after 1970-01-01. It counts in years that begin in March, so that a leap day is
// the last of its year. Not gmtime, which takes a lock.
static char *put_date(char *text, int days)
{
    enum { DAYS_OF_400_YEARS = 146097, DAYS_FROM_MARCH_OF_YEAR_0 = 719468 };
    days += DAYS_FROM_MARCH_OF_YEAR_0;
    int era = days / DAYS_OF_400_YEARS, of_era = days % DAYS_OF_400_YEARS;
    int year = (of_era - of_era / 1460 + of_era / 36524 - of_era / (DAYS_OF_400_YEARS - 1)) / 365;
    int day = of_era - (365 * year + year / 4 - year / 100);
    int month = (5 * day + 2) / 153; // 0 is March
    text = put_number(text, year + era * 400 + (month >= 10), 4, '-');
    text = put_number(text, month < 10 ? month + 3 : month - 9, 2, '-');
    return put_number(text, day - (153 * month + 2) / 5 + 1, 2, 'T');
}

void clock_timestamp(int64_t wall, char text[CLOCK_TIMESTAMP_SIZE])
{
    int64_t seconds = wall / 1000;
    int of_day = (int)(seconds % 86400);
    text = put_date(text, (int)(seconds / 86400));
    text = put_number(text, of_day / 3600, 2, ':');
    text = put_number(text, of_day / 60 % 60, 2, ':');
    text = put_number(text, of_day % 60, 2, '.');
    *put_number(text, (int)(wall % 1000), 3, 'Z') = '\0';
}
