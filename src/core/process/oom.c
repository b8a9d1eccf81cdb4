// SPDX-License-Identifier: Apache-2.0
// Counts processes killed because memory ran out, see oom.h.
#include "core/process/oom.h"

#include "core/base/cleanup.h"
#include "core/files/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_LIST = 64 * 1024 }; // bytes of /proc/self/cgroup

static int open_file(const char *root, const char *path, const char *name)
{
    cleanup_free char *whole = NULL;
    if (asprintf(&whole, "%s%s/%s", root, path, name) < 0) {
        whole = NULL;
        return -1;
    }
    return open(whole, O_RDONLY | O_CLOEXEC);
}

// A container may see its cgroup as the root of the mount, while /proc gives the host's path.
static int open_either(const char *root, const char *path, const char *name)
{
    int fd = open_file(root, path, name);
    return fd >= 0 ? fd : open_file(root, "", name);
}

// Whether a comma-separated list of controllers contains "memory".
static bool has_memory(const char *controllers)
{
    const char *found = strstr(controllers, "memory");
    return found && (found == controllers || found[-1] == ',') && strchr(",", found[6]);
}

// A line of /proc/self/cgroup is "NUMBER:CONTROLLERS:PATH"; for cgroup v2 it is "0::PATH".
static int open_counter_of(char *line)
{
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return -1;
    *controllers++ = *path++ = '\0';
    if (strcmp(line, "0") == 0 && !*controllers)
        return open_either("/sys/fs/cgroup", path, "memory.events");
    return has_memory(controllers) ? open_either("/sys/fs/cgroup/memory", path, "memory.oom_control") : -1;
}

static int open_counter(void)
{
    struct buffer list = {0};
    struct error error = {0};
    int fd = -1;
    if (file_read("/proc/self/cgroup", LONGEST_LIST, true, &list, &error) < 0 || buffer_append(&list, "", 1) < 0)
        error_clear(&error);
    else
        for (char *line, *rest = list.data; fd < 0 && (line = strsep(&rest, "\n"));)
            fd = open_counter_of(line);
    buffer_free(&list);
    return fd;
}

uint64_t oom_kills(void)
{
    static int fd = -2;
    static const char name[] = "\noom_kill ";
    char text[512];
    if (fd == -2)
        fd = open_counter();
    ssize_t size = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : -1;
    text[size > 0 ? size : 0] = '\0';
    const char *found = strstr(text, name);
    return found ? strtoull(found + sizeof name - 1, NULL, 10) : 0;
}
