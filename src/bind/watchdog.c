// SPDX-License-Identifier: Apache-2.0
// native.watchdog: ends the job if the runner hangs.
#include "core/watchdog.h"

#include "bind/bind.h"

static const char kept_key; // key in the registry of the result that core points to

static int f_start(lua_State *L)
{
    struct error error = {0};
    const char *path = bind_check_path(L, 1, &error);
    return bind_outcome(L, path ? watchdog_start(path, &error) : -1, &error);
}

// Appends parts first to last of the table at index to the result.
static void add_parts(lua_State *L, int index, lua_Integer first, lua_Integer last, struct watchdog_result *result)
{
    for (lua_Integer i = first; i <= last; i++) {
        struct iovec *part = &result->parts[result->count++];
        luaL_argcheck(L, lua_rawgeti(L, index, i) == LUA_TSTRING, index, "every part must be a string");
        part->iov_base = (void *)lua_tolstring(L, -1, &part->iov_len); // the table keeps the string alive
        lua_pop(L, 1);
    }
}

static int f_keep(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_Integer count = (lua_Integer)lua_rawlen(L, 1), status = bind_option_integer(L, 2, "status", 0, 1);
    lua_Integer steps = bind_option_integer(L, 2, "steps", 0, status);
    lua_Integer failure = bind_option_integer(L, 2, "failure_code", 0, steps);
    lua_Integer started_wall = luaL_checkinteger(L, 3);
    int64_t began = lua_isnoneornil(L, 4) ? WATCHDOG_CONTINUED : (int64_t)(luaL_checknumber(L, 4) * 1000);
    luaL_argcheck(L, failure <= count, 2, "places are not those of the parts");

    struct watchdog_result *result =
        lua_newuserdatauv(L, sizeof *result + (size_t)(count + 2) * sizeof *result->parts, 1);
    *result = (struct watchdog_result){.started_wall = started_wall, .began = began};
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    add_parts(L, 1, 1, status - 1, result);
    result->head = result->count++;
    add_parts(L, 1, steps, failure - 1, result);
    result->tail = result->count++;
    // The previous result stays on the stack until core knows this one.
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    watchdog_keep(result);
    lua_pushvalue(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
    return 0;
}

static int f_log(lua_State *L)
{
    size_t size;
    const char *line = luaL_checklstring(L, 1, &size);
    watchdog_log(line, size);
    return 0;
}

static int f_deadline(lua_State *L)
{
    lua_Number at = luaL_checknumber(L, 1);
    watchdog_deadline(at < 9e15 ? (int64_t)(at * 1000) : INT64_MAX);
    return 0;
}

static int f_ending(lua_State *L)
{
    (void)L;
    watchdog_ending();
    return 0;
}

static int f_written(lua_State *L)
{
    watchdog_written((int)luaL_checkinteger(L, 1));
    return 0;
}

static int f_stop(lua_State *L)
{
    (void)L;
    watchdog_stop();
    return 0;
}

static const luaL_Reg functions[] = {
    {"start", f_start},       {"stop", f_stop},     {"keep", f_keep},       {"log", f_log},
    {"deadline", f_deadline}, {"ending", f_ending}, {"written", f_written}, {NULL, NULL},
};

int luaopen_native_watchdog(lua_State *L)
{
    lua_pushboolean(L, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key); // so that f_keep needs no memory for the key
    luaL_newlib(L, functions);
    return 1;
}
