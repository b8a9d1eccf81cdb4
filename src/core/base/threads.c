// SPDX-License-Identifier: Apache-2.0
// Our threads, see threads.h.
#include "core/base/threads.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic pid_t joined[THREADS_MOST - 1];
static atomic_size_t count;

void threads_join(void)
{
    size_t place = atomic_fetch_add(&count, 1);
    if (place < THREADS_MOST - 1)
        joined[place] = (pid_t)syscall(SYS_gettid);
}

size_t threads_all(pid_t ids[THREADS_MOST])
{
    size_t found = 0;
    ids[found++] = getpid();
    for (size_t i = 0; i < THREADS_MOST - 1; i++)
        if (joined[i])
            ids[found++] = joined[i];
    return found;
}
