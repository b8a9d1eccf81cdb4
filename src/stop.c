// SPDX-License-Identifier: Apache-2.0
// Stops runaway Lua, see stop.h, by a count hook. The signal of a cancel or of the deadline sets it: a hook that is set
// from the start would slow down every instruction. A hook belongs to one Lua thread: coroutines have none.
#include "stop.h"

#include "bind/bind.h"
#include "core/base/interrupt.h"

#include <signal.h>

enum { INSTRUCTIONS = 1000000 }; // about ten milliseconds, in which Lua may save what was done

static lua_State *main_state;

static void stop_when_interrupted(lua_State *L, lua_Debug *unused);

// Runs in a signal handler, where lua_sethook may be called.
static void stop(void)
{
    lua_sethook(main_state, stop_when_interrupted, LUA_MASKCOUNT, INSTRUCTIONS);
}

// Stops runaway Lua with an error whose code is the reason, as a wait in core would return it.
static void stop_when_interrupted(lua_State *L, lua_Debug *unused)
{
    (void)unused;
    enum interrupt_reason reason = interrupt_reason();
    if (reason == INTERRUPT_NONE) {
        lua_sethook(L, NULL, 0, 0);
        if (interrupt_reason() != INTERRUPT_NONE) // a signal came meanwhile
            stop();
        return;
    }
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
