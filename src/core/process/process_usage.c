// SPDX-License-Identifier: Apache-2.0
// CPU time and memory, see process_usage.h.
#include "core/process/process_usage.h"

#include "core/process/process_children.h"

#include <stdio.h>
#include <sys/time.h>

enum { RSS_UNIT = 1024 }; // bytes; ru_maxrss is in KiB

static int64_t cpu_time_before;

int64_t usage_cpu_time(const struct rusage *usage)
{
    struct timeval sum;
    timeradd(&usage->ru_utime, &usage->ru_stime, &sum);
    return (int64_t)sum.tv_sec * 1000 + sum.tv_usec / 1000;
}

uint64_t usage_max_rss(const struct rusage *usage)
{
    return (uint64_t)usage->ru_maxrss * RSS_UNIT;
}

static int64_t cpu_time_so_far(void)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return usage_cpu_time(&own) + usage_cpu_time(&children);
}

void usage_begin(void)
{
    cpu_time_before = cpu_time_so_far();
}

// VmHWM counts from exec on; 0 without /proc.
static long own_max_rss(void)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && kib == 0 && fgets(line, sizeof line, status))
        sscanf(line, "VmHWM: %ld", &kib);
    if (status)
        fclose(status);
    return kib;
}

void usage_so_far(int64_t *cpu_time, uint64_t *max_rss)
{
    *cpu_time = cpu_time_so_far() - cpu_time_before;
    long own = own_max_rss(), of_children = children_max_rss();
    *max_rss = (uint64_t)(own > of_children ? own : of_children) * RSS_UNIT;
}
