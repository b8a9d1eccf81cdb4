// SPDX-License-Identifier: Apache-2.0
// What /proc says about a process, see process_stat.h.
#include "core/process/process_stat.h"

#include "core/base/cleanup.h"
#include "core/base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool process_stat_is_ours(void)
{
    static char link[16]; // asked once
    if (!*link)
        (void)!readlink("/proc/self", link, sizeof link - 1);
    return atoi(link) == getpid();
}

// The name, in parentheses, may hold anything: the fields begin behind the last one.
bool process_stat_read(pid_t pid, struct process_stat *stat)
{
    char path[32], text[1024], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 || !process_stat_is_ours() ? 0 : read(fd, text, sizeof text - 1);
    text[size > 0 ? size : 0] = '\0';
    const char *fields = strrchr(text, ')');
    *stat = (struct process_stat){0};
    bool is_read =
        fields && sscanf(fields, ") %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
                         &state, &stat->parent, &stat->session, &stat->started) == 4;
    stat->is_dead = state == 'Z' || state == 'X';
    return is_read;
}

uint64_t process_stat_started(pid_t pid, int64_t since)
{
    static bool is_known; // the clock is the one that /proc goes by, in ticks of 10 ms
    struct process_stat stat;
    const uint64_t tick = (uint64_t)since / 10;
    const bool is_certain = tick == (uint64_t)clock_read(CLOCK_BOOTTIME) / 10;
    if (is_known && is_certain)
        return tick;
    if (!process_stat_read(pid, &stat))
        return 0;
    is_known = is_known || (is_certain && stat.started == tick);
    return stat.started;
}
