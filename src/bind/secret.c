// SPDX-License-Identifier: Apache-2.0
// native.secret: takes secrets out of text.
#include "core/secret.h"

#include "bind/bind.h"

// add(secret) -> whether it is long enough to be found
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

// redact(text) -> text. Its upvalue is the buffer that it works in: most texts need none, so it is not made each time.
static int f_redact(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    lua_settop(L, 1);
    if (!secret_is_known())
        return 1;
    struct buffer *out = lua_touserdata(L, lua_upvalueindex(1));
    out->size = 0;
    int found = secret_redact(bytes, size, out);
    if (found < 0)
        return luaL_error(L, "not enough memory");
    if (found) {
        lua_pushlstring(L, out->data, out->size);
        buffer_free(out);
    }
    return 1;
}

// is_known() -> boolean
static int f_is_known(lua_State *L)
{
    lua_pushboolean(L, secret_is_known());
    return 1;
}

static const luaL_Reg functions[] = {{"add", f_add}, {"is_known", f_is_known}, {NULL, NULL}};

int luaopen_native_secret(lua_State *L)
{
    luaL_newlib(L, functions);
    bind_new_buffer(L);
    lua_pushcclosure(L, f_redact, 1);
    lua_setfield(L, -2, "redact");
    bind_set_integer(L, "SHORTEST", SECRET_SHORTEST);
    return 1;
}
