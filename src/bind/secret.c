// SPDX-License-Identifier: Apache-2.0
// native.secret: finds secrets in text from outside.
#include "core/text/secret.h"

#include "bind/bind.h"
#include "core/text/text.h"

static int f_add(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    int added = secret_add(bytes, size);
    if (added < 0)
        return luaL_error(L, "not enough memory");
    lua_pushboolean(L, added);
    return 1;
}

// The upvalue is a buffer to work in, which Lua owns.
static int f_redact(lua_State *L)
{
    static const char *const names[] = {"none", "start", "end", "both", NULL};
    static const unsigned cuts[] = {0, SECRET_CUT_START, SECRET_CUT_END, SECRET_CUT_START | SECRET_CUT_END};
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    int cut = luaL_checkoption(L, 2, "none", names);
    lua_settop(L, 1);
    if (!secret_is_known())
        return 1;
    struct buffer *clean = lua_touserdata(L, lua_upvalueindex(1));
    buffer_free(clean);
    int found = secret_redact_copy(bytes, &size, cuts[cut], NULL, clean);
    if (found > 0)
        lua_pushlstring(L, clean->data, clean->size);
    buffer_free(clean);
    return found < 0 ? luaL_error(L, "not enough memory") : 1;
}

static int f_settled(lua_State *L)
{
    size_t size;
    bool cut = false;
    const char *bytes = luaL_checklstring(L, 1, &size);
    struct buffer *clean = bind_push_shared_buffer(L);
    if (secret_redact_copy(bytes, &size, 0, &cut, clean) < 0)
        return luaL_error(L, "not enough memory");
    lua_pushinteger(L, (lua_Integer)size);
    lua_pushboolean(L, cut);
    return 2;
}

static int f_is_known(lua_State *L)
{
    lua_pushboolean(L, secret_is_known());
    return 1;
}

static const luaL_Reg functions[] = {{"add", f_add}, {"is_known", f_is_known}, {"settled", f_settled}, {NULL, NULL}};

int luaopen_native_secret(lua_State *L)
{
    luaL_newlib(L, functions);
    bind_new_buffer(L);
    lua_pushcclosure(L, f_redact, 1);
    lua_setfield(L, -2, "redact");
    bind_set_integer(L, "SHORTEST", SECRET_SHORTEST);
    return 1;
}
