// SPDX-License-Identifier: Apache-2.0
// Resources that let go of themselves at the end of their scope, unless stolen. For core only: a Lua error jumps past
// them.
#ifndef SBA_CORE_CLEANUP_H
#define SBA_CORE_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_close(const int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    errno = saved;
}

static inline void cleanup_free_pointer(void *pointer)
{
    free(*(void **)pointer);
}

static inline int steal_fd(int *fd)
{
    int stolen = *fd;
    *fd = -1;
    return stolen;
}

static inline void *steal_any_pointer(void *pointer)
{
    void *stolen = *(void **)pointer;
    *(void **)pointer = NULL;
    return stolen;
}

#define cleanup_fd __attribute__((cleanup(cleanup_close)))
#define cleanup_free __attribute__((cleanup(cleanup_free_pointer)))
#define steal_pointer(pointer) ((__typeof__(*(pointer)))steal_any_pointer(pointer))

#endif
