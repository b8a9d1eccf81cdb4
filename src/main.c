// SPDX-License-Identifier: Apache-2.0
// cynode-sba, the sandbox agent runner: hardens the process and hosts the Lua state. lua/ has the program.
#include "core/base/clock.h"
#include "core/base/ending.h"
#include "core/base/identity.h"
#include "core/base/interrupt.h"
#include "core/base/terminal_mode.h"
#include "core/process/process.h"
#include "core/process/process_children.h"
#include "host.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum {
    EXIT_INTERNAL = 3,
    KILLING = 1000, // ms
};

// Whether what was printed, if anything, is written. A reader that closed its end, as head does, has enough.
static bool stdout_is_written(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) && !(out.revents & POLLNVAL);
}

// Of a job whose end could not even begin: the result that stands stays, but nothing lives on.
static void end_processes(void)
{
    struct process_left left;
    process_finish(0, clock_now() + KILLING, &left);
}

int main(int argc, char **argv)
{
    process_children_usage_begin();
    bool is_hardened = identity_harden();
    bool can_start = interrupt_install() && is_hardened;
    ending_begin(argv);
    const struct ending *before = ending_inherited();
    for (size_t i = 0; i < before->command_count; i++)
        process_children_started(before->commands[i]);
    terminal_mode_keep();
    int status = can_start ? host_run(argc, argv) : -1;
    terminal_mode_restore();
    if (status < 0 && before->reason[0])
        end_processes();
    if (status == 0 && !stdout_is_written()) {
        fputs("cynode-sba: cannot write to stdout\n", stderr);
        return ENDING_UNWRITABLE;
    }
    return status < 0 ? EXIT_INTERNAL : status;
}
