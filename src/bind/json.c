// SPDX-License-Identifier: Apache-2.0
// native.json: JSON text and Lua values. What needs a file of its own is json_decode.c and json_encode.c.
#include "core/json.h"

#include "bind/bind.h"

// count(bytes) -> at least as many as a JSON text holds values
static int f_count(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    lua_pushinteger(L, (lua_Integer)json_count(bytes, size));
    return 1;
}

// kind(value) -> the JSON type of a decoded value
static int f_kind(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    if (lua_istable(L, 1))
        lua_pushstring(L, bind_is_array(L, 1) ? "array" : "object");
    else if (lua_islightuserdata(L, 1) && !lua_touserdata(L, 1))
        lua_pushliteral(L, "null");
    else
        lua_pushstring(L, luaL_typename(L, 1));
    return 1;
}

static const luaL_Reg functions[] = {{"count", f_count}, {"decode", bind_json_decode}, {"kind", f_kind}, {NULL, NULL}};

int luaopen_native_json(lua_State *L)
{
    luaL_newlib(L, functions);
    bind_push_json_encode(L);
    lua_setfield(L, -2, "encode");
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    bind_push_array_metatable(L);
    lua_setfield(L, -2, "array_metatable");
    return 1;
}
