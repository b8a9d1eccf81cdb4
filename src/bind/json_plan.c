// SPDX-License-Identifier: Apache-2.0
// What native.json.encode needs to know of a schema's objects, worked out once for each schema: its plan, see bind.h.
#include "core/json.h"

#include "bind/bind.h"

bool bind_push_part(lua_State *L, int index, const char *name)
{
    if (lua_istable(L, index)) {
        lua_pushstring(L, name);
        if (lua_rawget(L, index) == LUA_TTABLE)
            return true;
        lua_pop(L, 1);
    }
    lua_pushnil(L);
    return false;
}

// Pushes the key at index as it is written: quoted, with its colon.
static void push_quoted(lua_State *L, int index, struct buffer *scratch)
{
    size_t size, before = scratch->size;
    const char *key = lua_tolstring(L, index, &size);
    if (json_quote(key, size, scratch) < 0 || buffer_append_byte(scratch, ':') < 0)
        luaL_error(L, "cannot encode: not enough memory");
    lua_pushlstring(L, scratch->data + before, scratch->size - before);
    scratch->size = before;
}

// Adds the key on top of the stack to the plan, unless it is there; pops it.
static void add_key(lua_State *L, int plan, int properties, struct buffer *scratch)
{
    int key = lua_gettop(L);
    lua_pushvalue(L, key);
    if (lua_rawget(L, plan) == LUA_TNIL) {
        lua_Integer next = (lua_Integer)lua_rawlen(L, plan) + 1;
        lua_pushvalue(L, key);
        lua_rawseti(L, plan, next);
        push_quoted(L, key, scratch);
        lua_rawseti(L, plan, next + 1);
        if (!bind_push_part(L, properties, lua_tostring(L, key))) {
            lua_pop(L, 1);
            lua_pushboolean(L, 0);
        }
        lua_rawseti(L, plan, next + 2);
        lua_pushvalue(L, key);
        lua_pushboolean(L, 1);
        lua_rawset(L, plan);
    }
    lua_settop(L, key - 1);
}

static void add_list(lua_State *L, int schema, const char *list, int plan, int properties, struct buffer *scratch)
{
    if (bind_push_part(L, schema, list)) {
        lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
        for (lua_Integer i = 1; i <= count; i++)
            if (lua_rawgeti(L, -1, i) == LUA_TSTRING)
                add_key(L, plan, properties, scratch);
            else
                luaL_error(L, "schema: '%s' must hold strings", list);
    }
    lua_pop(L, 1);
}

void bind_push_json_plan(lua_State *L, int plans, int schema, struct buffer *scratch)
{
    lua_pushvalue(L, schema);
    if (lua_rawget(L, plans) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    int plan = lua_gettop(L);
    bind_push_part(L, schema, "properties");
    add_list(L, schema, "order", plan, plan + 1, scratch);
    add_list(L, schema, "required", plan, plan + 1, scratch);
    lua_pop(L, 1);
    lua_pushvalue(L, schema);
    lua_pushvalue(L, plan);
    lua_rawset(L, plans);
}
