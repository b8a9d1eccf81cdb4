// SPDX-License-Identifier: Apache-2.0
// What the kernel killed for want of memory in the cgroup of this process, which in a container is the container's.
//
// Nothing here fails: where nobody tells (no cgroup file system, the root cgroup), the count stays 0.
#ifndef SBA_CORE_OOM_H
#define SBA_CORE_OOM_H

#include <stdint.h>

// How many processes so far. The first call looks for the counter, and keeps its descriptor.
uint64_t oom_kills(void);

#endif
