// SPDX-License-Identifier: Apache-2.0
// Stops runaway Lua, see stop.h, by a count hook. The signal of a cancel or of the deadline sets it: a hook that is set
// from the start would slow down every instruction. A hook belongs to one Lua thread: coroutines have none.
#include "stop.h"

#include "bind/bind.h"
#include "core/base/interrupt.h"

#include <signal.h>

enum { INSTRUCTIONS_BETWEEN_CHECKS = 20000, CHECKS_BEFORE_ERROR = 50 };

static lua_State *main_state;

static void stop_when_interrupted(lua_State *L, lua_Debug *unused);

static void set_hook(lua_State *L)
{
    lua_sethook(L, stop_when_interrupted, LUA_MASKCOUNT, INSTRUCTIONS_BETWEEN_CHECKS);
}

// Runs in a signal handler, where lua_sethook may be called.
static void stop(void)
{
    set_hook(main_state);
}

// Lets Lua run on. A signal that came meanwhile still counts.
static void go_on(lua_State *L)
{
    lua_sethook(L, NULL, 0, 0);
    if (interrupt_reason() != INTERRUPT_NONE)
        stop();
}

// Stops runaway Lua with an error whose code is the reason, as a wait in core would return it. Not at once: after a
// wait in core was cut short, Lua gets about ten milliseconds to save what was done.
static void stop_when_interrupted(lua_State *L, lua_Debug *unused)
{
    (void)unused;
    static int checks;
    static unsigned cleared;
    enum interrupt_reason reason = interrupt_reason();
    if (reason == INTERRUPT_NONE || cleared != interrupt_cleared())
        checks = 0;
    cleared = interrupt_cleared();
    if (reason == INTERRUPT_NONE) {
        go_on(L);
        return;
    }
    if (++checks < CHECKS_BEFORE_ERROR)
        return;
    if (interrupt_in_session()) // code that catches the error is stopped at its next instruction
        lua_sethook(L, stop_when_interrupted, LUA_MASKCOUNT, 1);
    bind_push_interrupt(L, reason);
    lua_error(L);
}

void stop_watch(lua_State *L)
{
    main_state = L;
    interrupt_on_stop(stop);
}
