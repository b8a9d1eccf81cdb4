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

static int f_redact(lua_State *L)
{
    static const char *const cuts[] = {"none", "start", "end", "both", NULL}; // as SECRET_CUT_*
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    unsigned cut = (unsigned)luaL_checkoption(L, 2, "none", cuts);
    struct buffer *clean = bind_push_shared_buffer(L);
    int found = secret_redact_copy(bytes, size, cut, clean);
    if (found < 0)
        return luaL_error(L, "not enough memory");
    lua_pushvalue(L, 1);
    if (found)
        lua_pushlstring(L, clean->data, clean->size);
    bind_empty_shared_buffer(clean);
    return 1;
}

static int f_settled(lua_State *L)
{
    size_t size;
    bool cut = false;
    const char *bytes = luaL_checklstring(L, 1, &size);
    struct buffer *clean = bind_push_shared_buffer(L);
    if (secret_redact_settled(bytes, &size, &cut, clean) < 0)
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

static const luaL_Reg functions[] = {
    {"add", f_add}, {"is_known", f_is_known}, {"redact", f_redact}, {"settled", f_settled}, {NULL, NULL}};

int luaopen_native_secret(lua_State *L)
{
    luaL_newlib(L, functions);
    bind_set_integer(L, "SHORTEST", SECRET_SHORTEST);
    return 1;
}
