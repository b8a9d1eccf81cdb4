// SPDX-License-Identifier: Apache-2.0
// native.interrupt: the deadline, the cancel flag and the monotonic clock, in seconds.
#include "core/base/interrupt.h"

#include "bind/bind.h"

static int f_now(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)clock_now() / 1000);
    return 1;
}

static int f_elapsed_ms(lua_State *L)
{
    lua_pushinteger(L, clock_now() - (int64_t)(luaL_checknumber(L, 1) * 1000 + 0.5));
    return 1;
}

static int f_wall(lua_State *L)
{
    lua_pushinteger(L, clock_wall());
    return 1;
}

static int f_timestamp(lua_State *L)
{
    char text[CLOCK_TIMESTAMP_SIZE];
    lua_Integer wall = luaL_optinteger(L, 1, clock_wall());
    luaL_argcheck(L, wall >= 0 && wall < 253402300800000, 1, "must be milliseconds of the years 1970 to 9999");
    clock_timestamp(wall, text);
    lua_pushstring(L, text);
    return 1;
}

static int f_set_deadline(lua_State *L)
{
    interrupt_set_deadline(bind_check_seconds(L, 1));
    return 0;
}

static int f_remaining(lua_State *L)
{
    int64_t left = interrupt_remaining();
    if (left == INT64_MAX)
        return 0;
    lua_pushnumber(L, (lua_Number)left / 1000);
    return 1;
}

static int f_reason(lua_State *L)
{
    enum interrupt_reason reason = interrupt_reason();
    if (reason == INTERRUPT_NONE)
        return 0;
    bind_push_interrupt(L, reason);
    return 1;
}

static int f_signal(lua_State *L)
{
    int number = interrupt_signal();
    if (number == 0)
        return 0;
    lua_pushinteger(L, number);
    lua_pushnumber(L, (lua_Number)interrupt_signalled_at() / 1000);
    return 2;
}

static int f_watch_parent(lua_State *L)
{
    struct error error = {0};
    lua_Integer pid = luaL_optinteger(L, 1, 0);
    return bind_outcome(L, interrupt_watch_parent(pid, &error), &error);
}

static int f_sleep(lua_State *L)
{
    struct error error = {0};
    return bind_outcome(L, interrupt_sleep(bind_check_seconds(L, 1), &error), &error);
}

static int f_begin_session(lua_State *L)
{
    (void)L;
    interrupt_begin_session();
    return 0;
}

static int f_clear(lua_State *L)
{
    lua_pushboolean(L, interrupt_clear());
    return 1;
}

static int f_disarm(lua_State *L)
{
    (void)L;
    interrupt_disarm();
    return 0;
}

static int f_hold(lua_State *L)
{
    lua_pushboolean(L, interrupt_hold(lua_toboolean(L, 1)));
    return 1;
}

static int f_rearm(lua_State *L)
{
    interrupt_rearm(bind_check_seconds(L, 1));
    return 0;
}

const luaL_Reg bind_interrupt[] = {
    {"now", f_now},
    {"elapsed_ms", f_elapsed_ms},
    {"wall", f_wall},
    {"timestamp", f_timestamp},
    {"set_deadline", f_set_deadline},
    {"remaining", f_remaining},
    {"reason", f_reason},
    {"signal", f_signal},
    {"watch_parent", f_watch_parent},
    {"sleep", f_sleep},
    {"begin_session", f_begin_session},
    {"clear", f_clear},
    {"disarm", f_disarm},
    {"hold", f_hold},
    {"rearm", f_rearm},
    {NULL, NULL},
};
