// SPDX-License-Identifier: Apache-2.0
// native.identity: the user and the environment of the runner.
#include "core/base/identity.h"

#include "bind/bind.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static int f_is_root(lua_State *L)
{
    uid_t real, effective, saved;
    getresuid(&real, &effective, &saved);
    lua_pushboolean(L, real == 0 || effective == 0 || saved == 0);
    return 1;
}

static int f_system(lua_State *L)
{
    struct utsname system = {0};
    uname(&system); // cannot fail
    lua_createtable(L, 0, 3);
    bind_set_string(L, "name", system.sysname);
    bind_set_string(L, "release", system.release);
    bind_set_string(L, "machine", system.machine);
    return 1;
}

static int f_uid(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)geteuid());
    return 1;
}

static int f_become(lua_State *L)
{
    struct error error = {0};
    return bind_outcome(L, identity_become(luaL_checkstring(L, 1), &error), &error);
}

static int f_environment(lua_State *L)
{
    extern char **environ;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_newtable(L);
    for (char **entry = environ; entry && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        if (!equals || equals == *entry)
            continue;
        lua_pushlstring(L, *entry, (size_t)(equals - *entry));
        lua_pushstring(L, equals + 1);
        lua_rawset(L, -3);
    }
    for (lua_Integer i = 1; lua_rawgeti(L, 1, i) == LUA_TSTRING; i++) {
        identity_forget_variable(lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return 1;
}

const luaL_Reg bind_identity[] = {
    {"is_root", f_is_root}, {"system", f_system},           {"uid", f_uid},
    {"become", f_become},   {"environment", f_environment}, {NULL, NULL},
};
