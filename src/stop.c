// SPDX-License-Identifier: Apache-2.0
// Stops runaway Lua, see stop.h, by a count hook. The signal of a cancel or of the deadline sets it: a hook that is set
// from the start would slow down every instruction. A hook belongs to one Lua thread, so we track which one runs.
#include "stop.h"

#include "bind/bind.h"
#include "core/interrupt.h"

#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>

enum { INSTRUCTIONS_BETWEEN_CHECKS = 20000, CHECKS_BEFORE_ERROR = 50 };

static lua_State *volatile running;
static volatile sig_atomic_t stopping;

static void stop_when_interrupted(lua_State *L, lua_Debug *unused);

static void set_hook(lua_State *L)
{
    lua_sethook(L, stop_when_interrupted, LUA_MASKCOUNT, INSTRUCTIONS_BETWEEN_CHECKS);
}

// Runs in a signal handler, where lua_sethook may be called.
static void stop(void)
{
    stopping = 1;
    set_hook(running);
}

// Lets Lua run on. A signal that came meanwhile still counts.
static void go_on(lua_State *L)
{
    stopping = 0;
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

static void enter(lua_State *L)
{
    running = L;
    if (stopping)
        set_hook(L);
}

// Calls the first upvalue, which runs another Lua thread: the second upvalue, or else the first argument.
static int call_in_thread(lua_State *L)
{
    lua_State *thread = lua_tothread(L, lua_upvalueindex(2));
    if (!thread)
        thread = lua_tothread(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    enter(thread ? thread : L);
    int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    enter(L);
    return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

// coroutine.wrap: the upvalue is the library's own, and its function's upvalue is the thread.
static int wrap(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    lua_getupvalue(L, -1, 1);
    lua_pushcclosure(L, call_in_thread, 2);
    return 1;
}

static void replace(lua_State *L, const char *name, lua_CFunction function)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
}

void stop_watch(lua_State *L)
{
    lua_getglobal(L, LUA_COLIBNAME);
    replace(L, "resume", call_in_thread);
    replace(L, "close", call_in_thread);
    replace(L, "wrap", wrap);
    lua_pop(L, 1);
    running = L;
    interrupt_on_stop(stop);
}
