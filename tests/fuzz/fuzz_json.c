// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: lua-cjson with our patches, under util/json.lua. fuzz_json.lua says what must hold.
#include "bind/bind.h"
#include "bundle.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void check(lua_State *L, int status)
{
    if (status == LUA_OK)
        return;
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    abort();
}

static lua_State *open_lua(void)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    bind_open_all(L);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "searchers");
    lua_pushcfunction(L, bundle_searcher);
    lua_rawseti(L, -2, 2);
    lua_settop(L, 0);
    check(L, luaL_dofile(L, SBA_FUZZ_DIR "/fuzz_json.lua"));
    return L;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    if (!L)
        L = open_lua();
    lua_pushvalue(L, 1);
    lua_pushlstring(L, (const char *)data, size);
    check(L, lua_pcall(L, 1, 0, 0));
    return 0;
}
