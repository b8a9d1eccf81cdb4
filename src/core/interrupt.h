// SPDX-License-Identifier: Apache-2.0
// One deadline and one cancel flag that every wait in core obeys.
//
// SIGTERM and SIGINT cancel. All times are milliseconds of clock_now. Nothing here fails: an event file that
// cannot be had at the start ends the program, for it could not be stopped in good order.
#ifndef SBA_CORE_INTERRUPT_H
#define SBA_CORE_INTERRUPT_H

#include "core/clock.h"
#include "core/error.h"

#include <stdbool.h>
#include <stdint.h>

enum interrupt_reason { INTERRUPT_NONE, INTERRUPT_TIMEOUT, INTERRUPT_CANCELLED };

// Installs the signal handlers. Once, at the start.
void interrupt_install(void);

// Sets the deadline that many milliseconds from now; a second call replaces the first.
void interrupt_set_deadline(int64_t milliseconds);

// Milliseconds until the deadline, never below 0; INT64_MAX where none is set or the interrupt is disarmed.
int64_t interrupt_remaining(void);

// Why work must stop now; a cancel goes before a timeout. INTERRUPT_NONE after interrupt_disarm.
enum interrupt_reason interrupt_reason(void);

// 0, or -1 and *error filled ("timeout" or "cancelled") where work must stop now.
int interrupt_check(struct error *error);

// The code and the message that go with a reason; static strings.
const char *interrupt_code(enum interrupt_reason reason);
const char *interrupt_message(enum interrupt_reason reason);

// The signal that cancelled, or 0; SIGTERM where both came.
int interrupt_signal(void);

// When the first one came; good where there is one.
int64_t interrupt_signalled_at(void);

// A descriptor that polls readable from the first cancel on (drained by interrupt_clear only, so every waiter sees
// it). Never close it. -1 after interrupt_disarm, which poll(2) ignores.
int interrupt_fd(void);

// What to give poll(2) as timeout: the wished milliseconds (negative: no wish) or what is left to the deadline,
// whichever is less.
int interrupt_poll_timeout(int64_t wished);

// Waits that many milliseconds. 0, or -1 and *error filled as by interrupt_check where work must stop before.
int interrupt_sleep(int64_t milliseconds, struct error *error);

// From here on a person gives the orders one by one: SIGINT stops what is being done, not the program.
void interrupt_begin_session(void);
bool interrupt_in_session(void);

// Takes a SIGINT as answered, so that the session goes on. Whether there was one; SIGTERM stays.
bool interrupt_clear(void);

// How many were cleared so far: what was done about one does not count for the next.
unsigned interrupt_cleared(void);

// Has a function called when a cancel comes or the deadline is reached, in a signal handler on the main thread. One.
void interrupt_on_stop(void (*call)(void));

// Has a function called in the signal handler of SIGTERM and SIGINT. One.
void interrupt_on_signal(void (*call)(void));

// The work is over, for whatever reason: from here on nothing is cut short, so that the result can be written.
void interrupt_disarm(void);

// After interrupt_disarm: what is done now has that many milliseconds, whatever was before, and a signal that comes
// from now on cancels it. interrupt_disarm ends this.
void interrupt_rearm(int64_t milliseconds);

#endif
