// SPDX-License-Identifier: Apache-2.0
// Finds bundled modules; a dev build reads lua/ from disk first, and says so on request (native.bundle.source).
#include "bundle.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *name, const void *module)
{
    return strcmp(name, ((const struct bundled_module *)module)->name);
}

static const struct bundled_module *find(const char *name)
{
    return bsearch(name, bundled_modules, bundled_module_count, sizeof *bundled_modules, by_name);
}

#ifdef SBA_LUA_DIR
// Pushes the chunk of a file below root and returns 1, or pushes nothing and returns 0.
static int load_from_disk(lua_State *L, const char *root, const char *path)
{
    if (!*root)
        return 0;
    lua_pushfstring(L, "%s/%s", root, path);
    lua_pushfstring(L, "@%s", lua_tostring(L, -1));
    int status = luaL_loadfilex(L, lua_tostring(L, -2), "t");
    if (status == LUA_ERRFILE) {
        lua_pop(L, 3);
        return 0;
    }
    if (status != LUA_OK)
        return lua_error(L);
    lua_replace(L, -3);
    lua_pop(L, 1);
    return 1;
}
#endif

int bundle_searcher(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const struct bundled_module *module = find(name);
    if (!module) {
        lua_pushfstring(L, "no bundled module '%s'", name);
        return 1;
    }
#ifdef SBA_LUA_DIR
    if (load_from_disk(L, SBA_LUA_DIR, module->path) || load_from_disk(L, SBA_EXTRA_LUA_DIR, module->path)) {
        lua_pushstring(L, module->path);
        return 2;
    }
#endif
    if (luaL_loadbufferx(L, (const char *)module->code, module->size, module->path, "b") != LUA_OK)
        return lua_error(L);
    lua_pushstring(L, module->path);
    return 2;
}

static int f_list(lua_State *L)
{
    size_t size;
    const char *prefix = luaL_checklstring(L, 1, &size);
    lua_newtable(L);
    for (size_t i = 0; i < bundled_module_count; i++) {
        if (strncmp(bundled_modules[i].name, prefix, size) != 0)
            continue;
        lua_pushstring(L, bundled_modules[i].name + size);
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
    return 1;
}

static const luaL_Reg functions[] = {{"list", f_list}, {NULL, NULL}};

int luaopen_native_bundle(lua_State *L)
{
    luaL_newlib(L, functions);
    lua_pushstring(L, SBA_VERSION);
    lua_setfield(L, -2, "version");
    lua_pushstring(L, bundled_library_versions);
    lua_setfield(L, -2, "libraries");
#ifdef SBA_LUA_DIR
    lua_pushstring(L, "disk");
#else
    lua_pushstring(L, "embedded");
#endif
    lua_setfield(L, -2, "source");
    return 1;
}
