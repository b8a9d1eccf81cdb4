// SPDX-License-Identifier: Apache-2.0
// chains COUNT: so many chains of processes, each of which ends as soon as it has started the next, in a session of its
// own, for a minute. In C, because only what ends within microseconds keeps whoever reaps it from everything else.
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void go_on_until(time_t end)
{
    while (time(NULL) < end) {
        pid_t next = fork();
        if (next > 0)
            _exit(0);
        if (next == 0)
            setsid();
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + 60;
    signal(SIGTERM, SIG_IGN);
    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
        if (fork() == 0)
            go_on_until(end);
    while (time(NULL) < end)
        pause();
    return 0;
}
