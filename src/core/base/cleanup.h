// SPDX-License-Identifier: Apache-2.0
// Resources that are released at the end of their scope, unless stolen. For core only: a Lua error jumps past them.
#ifndef SBA_CORE_CLEANUP_H
#define SBA_CORE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

// Closes a descriptor that is open, and makes it -1. Keeps errno.
static inline void cleanup_close(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

static inline void cleanup_closedir(DIR **directory)
{
    if (*directory)
        closedir(*directory);
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
#define cleanup_directory __attribute__((cleanup(cleanup_closedir)))
#define cleanup_free __attribute__((cleanup(cleanup_free_pointer)))
#define steal_pointer(pointer) ((__typeof__(*(pointer)))steal_any_pointer(pointer))

#endif
