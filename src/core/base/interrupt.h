// SPDX-License-Identifier: Apache-2.0
// One deadline and one cancel flag that every wait in core obeys.
//
// Every signal cancels whose default is to end a process, unless it was ignored when the program started (nohup). None
// of these: SIGPIPE and SIGXFSZ, which are ignored; SIGALRM, which is ours; the signals of crashes (ending.h). Times
// are milliseconds of clock_now. Nothing here fails but interrupt_watch_parent and interrupt_install.
//
// What stops work, and what is known of signals:
//
//   after                  deadline                     cancel                              interrupt_signal
//   install                none until set_deadline      yes                                 the signal
//   hold(true)             later, after hold(false)     later, after hold(false)            the signal
//   disarm                 no                           no                                  the signal
//   rearm, after disarm    the new one                  by a signal that comes from now on  also earlier ones
//   clear, in a session    as before                    SIGINT is forgotten                 0, but for others
#ifndef SBA_CORE_INTERRUPT_H
#define SBA_CORE_INTERRUPT_H

#include "core/base/clock.h"
#include "core/base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum interrupt_reason { INTERRUPT_NONE, INTERRUPT_TIMEOUT, INTERRUPT_CANCELLED };

// Installs the signal handlers. Call it once, at the start. False where it gets no eventfd, as it says on stderr.
bool interrupt_install(void);

// Sets the deadline that many milliseconds from now; a second call replaces the first.
void interrupt_set_deadline(int64_t milliseconds);

// Milliseconds until the deadline, at least 0; INT64_MAX if none is set or the interrupt is disarmed.
int64_t interrupt_remaining(void);

// Why work must stop now; a cancel wins over a timeout. INTERRUPT_NONE after interrupt_disarm.
enum interrupt_reason interrupt_reason(void);

// 0, or -1 and *error ("timeout" or "cancelled") if work must stop now.
int interrupt_check(struct error *error);

// The code and the message of a reason; static strings.
const char *interrupt_code(enum interrupt_reason reason);
const char *interrupt_message(enum interrupt_reason reason);

// The number of the signal that cancelled, or 0. The first one; but SIGTERM if that came too.
int interrupt_signal(void);

// When the first signal came; valid if there was one.
int64_t interrupt_signalled_at(void);

// A descriptor that is readable from the first cancel until interrupt_clear. Never close it. -1 after interrupt_disarm,
// which poll(2) ignores.
int interrupt_fd(void);

// The timeout for poll(2): the wanted milliseconds (negative: none) or the time until the deadline, whichever is less.
int interrupt_poll_timeout(int64_t wished);

// Waits that many milliseconds. 0, or -1 and *error as by interrupt_check if work must stop earlier.
int interrupt_sleep(int64_t milliseconds, struct error *error);

// Begins an interactive session: from now on SIGINT stops the current work, not the program.
void interrupt_begin_session(void);
bool interrupt_in_session(void);

// Clears a SIGINT, so that the session goes on; SIGTERM stays. Returns whether there was one.
bool interrupt_clear(void);

// From now on SIGTERM and SIGINT alone cancel; another that came before is forgotten.
void interrupt_ignore_others(void);

// From now on the end of the process that started this one cancels, as SIGTERM does, as long as a thread of ours waits
// in interrupt_wait_for. Its threads may end. expected: its PID, or 0; without it, one that was gone before
// interrupt_install cannot be told from the process that adopted us. Errors: "unsupported" if it is outside our PID
// namespace; "gone" if it has ended already, and then this has cancelled.
int interrupt_watch_parent(int64_t expected, struct error *error);

// For the thread that watches: waits until the descriptor is readable. Meanwhile it sees the end of the parent.
void interrupt_wait_for(int fd);

// Sets the function that a signal handler on the main thread calls at a cancel or at the deadline.
void interrupt_on_stop(void (*call)(void));

// Sets the function that the signal handler of a cancel calls.
void interrupt_on_signal(void (*call)(void));

// Ends the effect of deadline and cancel, so that the result can be written.
void interrupt_disarm(void);

// While held, deadline and cancel have no effect; they do afterwards. Returns whether they were held before.
bool interrupt_hold(bool held);

// After interrupt_disarm: sets a new deadline that many milliseconds from now, and forgets earlier signals; new ones
// cancel again. interrupt_disarm ends this.
void interrupt_rearm(int64_t milliseconds);

#endif
