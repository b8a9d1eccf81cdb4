// SPDX-License-Identifier: Apache-2.0
// native.ending: the end of a job that cannot end by itself.
#include "core/base/ending.h"

#include "bind/bind.h"

// inherited() -> what the image before left, or nil
static int f_inherited(lua_State *L)
{
    const struct ending *before = ending_inherited();
    if (!before->reason[0])
        return 0;
    lua_createtable(L, 0, 4);
    bind_set_string(L, "reason", before->reason);
    if (before->information)
        bind_set_string(L, "information", before->information);
    if (before->journal >= 0)
        bind_set_integer(L, "journal", before->journal);
    if (before->signal)
        bind_set_integer(L, "signal", before->signal);
    return 1;
}

static int f_start(lua_State *L)
{
    struct error error = {0};
    return bind_outcome(L, ending_start(&error), &error);
}

static int f_last(lua_State *L)
{
    struct error error = {0};
    return bind_outcome(L, ending_last((int)luaL_checkinteger(L, 1), &error), &error);
}

static int f_keep(lua_State *L)
{
    struct error error = {0};
    const char *information = luaL_checkstring(L, 1);
    int journal = (int)luaL_checkinteger(L, 2);
    return bind_outcome(L, ending_keep(information, journal, &error), &error);
}

static int f_deadline(lua_State *L)
{
    ending_deadline(bind_check_seconds(L, 1));
    return 0;
}

static int f_begun(lua_State *L)
{
    (void)L;
    ending_begun();
    return 0;
}

static int f_written(lua_State *L)
{
    ending_written((int)luaL_checkinteger(L, 1));
    return 0;
}

static int f_memory(lua_State *L)
{
    (void)L;
    ending_memory();
    return 0;
}

static int f_stop(lua_State *L)
{
    (void)L;
    ending_stop();
    return 0;
}

const luaL_Reg bind_ending[] = {
    {"inherited", f_inherited}, {"start", f_start}, {"last", f_last},       {"keep", f_keep},
    {"deadline", f_deadline},   {"begun", f_begun}, {"written", f_written}, {"memory", f_memory},
    {"stop", f_stop},           {NULL, NULL},
};
