// SPDX-License-Identifier: Apache-2.0
// launch FD COMMAND ARGUMENT...: runs a command and writes "NANOSECONDS KIB MICROSECONDS" to FD: wall time from before
// its start to its end; its peak resident memory; processor time of it and of the children that it waited for. Small
// and static, because until its exec a child counts the memory of its parent. Exits as the command does (128 + signal).
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static long long microseconds(struct timeval time)
{
    return time.tv_sec * 1000000LL + time.tv_usec;
}

static long long nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int fd = atoi(argv[1]), status;
    struct rusage usage;
    pid_t pid;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    long long start = nanoseconds();
    int failed = posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ);
    if (failed) {
        fprintf(stderr, "launch: cannot start %s: %s\n", argv[2], strerror(failed));
        return 2;
    }
    while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
        ;
    long long processor = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
    dprintf(fd, "%lld %ld %lld\n", nanoseconds() - start, usage.ru_maxrss, processor);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
