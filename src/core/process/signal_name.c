// SPDX-License-Identifier: Apache-2.0
// The names of signals, see signal_name.h. The C library has them too (sigabbrev_np), but musl does not.
#include "core/process/signal_name.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#define NAMED(name) [name] = #name
static const char *const names[] = {
    NAMED(SIGHUP),    NAMED(SIGINT),  NAMED(SIGQUIT),  NAMED(SIGILL),  NAMED(SIGTRAP), NAMED(SIGABRT),
    NAMED(SIGBUS),    NAMED(SIGFPE),  NAMED(SIGKILL),  NAMED(SIGUSR1), NAMED(SIGSEGV), NAMED(SIGUSR2),
    NAMED(SIGPIPE),   NAMED(SIGALRM), NAMED(SIGTERM),  NAMED(SIGCHLD), NAMED(SIGCONT), NAMED(SIGSTOP),
    NAMED(SIGTSTP),   NAMED(SIGTTIN), NAMED(SIGTTOU),  NAMED(SIGURG),  NAMED(SIGXCPU), NAMED(SIGXFSZ),
    NAMED(SIGVTALRM), NAMED(SIGPROF), NAMED(SIGWINCH), NAMED(SIGIO),   NAMED(SIGPWR),  NAMED(SIGSYS),
#ifdef SIGSTKFLT
    NAMED(SIGSTKFLT),
#endif
};

void signal_name(int number, char name[SIGNAL_NAME_SIZE])
{
    if (number > 0 && (size_t)number < sizeof names / sizeof *names && names[number])
        snprintf(name, SIGNAL_NAME_SIZE, "%s", names[number]);
    else if (number >= SIGRTMIN && number <= SIGRTMAX)
        snprintf(name, SIGNAL_NAME_SIZE, "SIGRTMIN+%d", number - SIGRTMIN);
    else
        snprintf(name, SIGNAL_NAME_SIZE, "signal %d", number);
}
