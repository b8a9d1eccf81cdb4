// SPDX-License-Identifier: Apache-2.0
// CPU time and memory that this program and its waited-for descendants used. Nothing here fails.
#ifndef SBA_CORE_PROCESS_USAGE_H
#define SBA_CORE_PROCESS_USAGE_H

#include <stdint.h>
#include <sys/resource.h>

// Call it when the program starts: what the same process used before exec is not counted.
void usage_begin(void);

// CPU time in milliseconds until now, and the largest resident size of one process in bytes.
void usage_so_far(int64_t *cpu_time, uint64_t *max_rss);

// User and system time in milliseconds.
int64_t usage_cpu_time(const struct rusage *usage);

// ru_maxrss in bytes.
uint64_t usage_max_rss(const struct rusage *usage);

#endif
