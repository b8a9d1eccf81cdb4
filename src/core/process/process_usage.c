// SPDX-License-Identifier: Apache-2.0
// CPU time and memory, see process_usage.h.
#include "core/process/process_usage.h"

#include "core/process/process_children.h"

#include <stdio.h>
#include <sys/time.h>

enum { RSS_UNIT = 1024 }; // bytes; ru_maxrss is in KiB

static struct rusage own_before;
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

static int64_t cpu_time_so_far(struct rusage *own)
{
    struct rusage children;
    getrusage(RUSAGE_SELF, own);
    getrusage(RUSAGE_CHILDREN, &children);
    return usage_cpu_time(own) + usage_cpu_time(&children);
}

void usage_begin(void)
{
    cpu_time_before = cpu_time_so_far(&own_before);
}

// ru_maxrss keeps its value across exec. VmHWM counts from exec on, but costs more to read.
static long own_max_rss(const struct rusage *own)
{
    char line[256];
    long kib = 0;
    FILE *status = own->ru_maxrss > own_before.ru_maxrss ? NULL : fopen("/proc/self/status", "re");
    if (!status)
        return own->ru_maxrss;
    while (kib == 0 && fgets(line, sizeof line, status))
        sscanf(line, "VmHWM: %ld", &kib);
    fclose(status);
    return kib > 0 ? kib : own->ru_maxrss;
}

void usage_so_far(int64_t *cpu_time, uint64_t *max_rss)
{
    struct rusage own;
    *cpu_time = cpu_time_so_far(&own) - cpu_time_before;
    long largest = own_max_rss(&own), of_children = children_max_rss();
    *max_rss = (uint64_t)(largest > of_children ? largest : of_children) * RSS_UNIT;
}
