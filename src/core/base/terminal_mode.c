// SPDX-License-Identifier: Apache-2.0
// The mode of our terminal, see terminal_mode.h.
#include "core/base/terminal_mode.h"

#include <signal.h>
#include <termios.h>
#include <unistd.h>

static int terminal = -1;
static struct termios kept;

void terminal_mode_keep(void)
{
    for (int fd = 0; fd <= 2 && terminal < 0; fd++)
        if (tcgetattr(fd, &kept) == 0)
            terminal = fd;
}

void terminal_mode_restore(void)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTTOU); // else the terminal stops us if we lose it meanwhile
    if (terminal < 0 || tcgetpgrp(terminal) != getpgrp())
        return;
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    tcsetattr(terminal, TCSANOW, &kept);
}
