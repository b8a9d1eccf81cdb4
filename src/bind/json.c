// SPDX-License-Identifier: Apache-2.0
// native.json: writes a value as JSON, its keys in the order of a schema. What needs no order is left to lua-cjson.
#include "bind/bind.h"

#include <stdio.h>
#include <string.h>

enum { VALUE = 1, SCHEMA, RULES, HEAD, PLANS, OUT }; // on the stack
enum { NAMES = 1, KNOWN, PROPERTIES };               // of a plan
enum { LEVELS_MAX = 200, SLOTS = 16 };

static void check(lua_State *L, int status)
{
    if (status < 0)
        luaL_error(L, "not enough memory");
}

static inline void add_bytes(lua_State *L, struct buffer *out, const char *bytes, size_t size)
{
    check(L, buffer_append(out, bytes, size));
}

static void add_string(lua_State *L, struct buffer *out, int index)
{
    size_t size;
    const char *bytes = lua_tolstring(L, index, &size);
    add_bytes(L, out, "\"", 1);
    check(L, text_json_escape(bytes, size, out));
    add_bytes(L, out, "\"", 1);
}

static void add_integer(lua_State *L, struct buffer *out, int index)
{
    char digits[24];
    int size = snprintf(digits, sizeof digits, LUA_INTEGER_FMT, lua_tointeger(L, index));
    add_bytes(L, out, digits, (size_t)size);
}

// Adds a value as lua-cjson encodes it.
static void add_encoded(lua_State *L, struct buffer *out, int index)
{
    size_t size;
    lua_getfield(L, RULES, "encode");
    lua_pushvalue(L, index);
    lua_call(L, 1, 1);
    const char *bytes = luaL_checklstring(L, -1, &size);
    check(L, text_is_utf8(bytes, size) ? buffer_append(out, bytes, size) : text_repair(bytes, size, out));
    lua_pop(L, 1);
}

static bool is_marked(lua_State *L, int index, const char *mark)
{
    if (!lua_getmetatable(L, index))
        return false;
    luaL_getmetatable(L, mark);
    bool same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}

static bool is_array(lua_State *L, int index)
{
    if (is_marked(L, index, "cjson.array"))
        return true;
    bool has_first = lua_rawgeti(L, index, 1) != LUA_TNIL;
    lua_pop(L, 1);
    return has_first;
}

static lua_Integer count_members(lua_State *L, int index)
{
    lua_Integer count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        count++;
    return count;
}

static void add_value(lua_State *L, struct buffer *out, int index, int schema, int level);

// Adds those of the named members that the object has, after `written` others. Returns how many there are then.
static lua_Integer add_members(lua_State *L, struct buffer *out, int object, int names, int properties,
                               lua_Integer written, int level)
{
    int top = lua_gettop(L), name = top + 1, value = top + 2, schema = top + 3;
    lua_Integer count = (lua_Integer)lua_rawlen(L, names);
    for (lua_Integer i = 1; i <= count; i++, lua_settop(L, top)) {
        lua_rawgeti(L, names, i);
        lua_pushvalue(L, name);
        if (lua_rawget(L, object) == LUA_TNIL)
            continue;
        add_bytes(L, out, written++ ? "," : "{", 1);
        add_string(L, out, name);
        add_bytes(L, out, ":", 1);
        lua_pushvalue(L, name);
        lua_rawget(L, properties);
        add_value(L, out, value, schema, level);
    }
    return written;
}

// Adds an object, of which `written` members are already there.
static void add_object(lua_State *L, struct buffer *out, int object, int schema, lua_Integer written, int level)
{
    int plan = lua_gettop(L) + 1, names = plan + NAMES, known = plan + KNOWN, properties = plan + PROPERTIES;
    lua_Integer all = written + count_members(L, object);
    lua_pushvalue(L, schema);
    lua_gettable(L, PLANS);
    for (int part = NAMES; part <= PROPERTIES; part++)
        lua_rawgeti(L, plan, part);
    written = add_members(L, out, object, names, properties, written, level);
    if (written < all) { // others, which the schema does not order
        lua_getfield(L, RULES, "others");
        lua_pushvalue(L, object);
        lua_pushvalue(L, known);
        lua_call(L, 2, 1);
        written = add_members(L, out, object, lua_gettop(L), properties, written, level);
    }
    add_bytes(L, out, written ? "}" : "{}", written ? 1 : 2);
    lua_settop(L, plan - 1);
}

static void add_array(lua_State *L, struct buffer *out, int list, int items, int level)
{
    lua_Integer count = (lua_Integer)lua_rawlen(L, list);
    if (count_members(L, list) != count)
        luaL_error(L, "cannot encode: an array with holes or other keys");
    add_bytes(L, out, "[", 1);
    for (lua_Integer i = 1; i <= count; i++) {
        if (i > 1)
            add_bytes(L, out, ",", 1);
        lua_rawgeti(L, list, i);
        add_value(L, out, lua_gettop(L), items, level);
        lua_pop(L, 1);
    }
    add_bytes(L, out, "]", 1);
}

// Adds a table if its schema orders keys in it.
static bool add_ordered(lua_State *L, struct buffer *out, int index, int schema, int level)
{
    if (!lua_istable(L, schema) || is_marked(L, index, "cjson.long_number"))
        return false;
    if (level > LEVELS_MAX)
        luaL_error(L, "cannot encode: nested deeper than %d levels", LEVELS_MAX);
    luaL_checkstack(L, SLOTS, "a deep value");
    if (!is_array(L, index)) {
        add_object(L, out, index, schema, 0, level + 1);
        return true;
    }
    bool has_items = lua_getfield(L, schema, "items") != LUA_TNIL;
    if (has_items)
        add_array(L, out, index, lua_gettop(L), level + 1);
    lua_pop(L, 1);
    return has_items;
}

static void add_value(lua_State *L, struct buffer *out, int index, int schema, int level)
{
    switch (lua_type(L, index)) {
    case LUA_TSTRING:
        add_string(L, out, index);
        return;
    case LUA_TNUMBER:
        if (lua_isinteger(L, index))
            add_integer(L, out, index);
        else
            add_encoded(L, out, index);
        return;
    case LUA_TTABLE:
        if (!add_ordered(L, out, index, schema, level))
            add_encoded(L, out, index);
        return;
    default:
        add_encoded(L, out, index);
    }
}

static int f_encode(lua_State *L)
{
    luaL_checkany(L, VALUE);
    luaL_checktype(L, RULES, LUA_TTABLE);
    lua_settop(L, HEAD);
    lua_getfield(L, RULES, "plans");
    struct buffer *out = bind_push_shared_buffer(L);
    if (lua_isnil(L, HEAD)) {
        add_value(L, out, VALUE, SCHEMA, 0);
    } else {
        size_t size;
        const char *head = luaL_checklstring(L, HEAD, &size);
        luaL_checktype(L, VALUE, LUA_TTABLE);
        luaL_checktype(L, SCHEMA, LUA_TTABLE);
        add_bytes(L, out, head, size);
        add_object(L, out, VALUE, SCHEMA, 1, 1);
    }
    lua_pushlstring(L, out->data, out->size);
    bind_empty_shared_buffer(out);
    return 1;
}

static int f_past(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    lua_Integer most = luaL_checkinteger(L, 2);
    luaL_argcheck(L, most >= 1, 2, "must be positive");
    size_t at = text_json_past(bytes, size, (size_t)most);
    if (at == size)
        return 0;
    lua_pushinteger(L, (lua_Integer)at);
    return 1;
}

const luaL_Reg bind_json[] = {{"encode", f_encode}, {"past", f_past}, {NULL, NULL}};
