// SPDX-License-Identifier: Apache-2.0
// How many processes the kernel killed because memory ran out, in the cgroup of this process (in a container, that of
// the container).
//
// Nothing here fails: without a counter (no cgroup file system, the root cgroup) the count stays 0.
#ifndef SBA_CORE_OOM_H
#define SBA_CORE_OOM_H

#include <stdint.h>

// The count so far. The first call finds the counter and keeps its descriptor.
uint64_t oom_kills(void);

#endif
