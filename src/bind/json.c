// SPDX-License-Identifier: Apache-2.0
// native.json: writes a value as JSON, its keys in the order of a schema. What needs no order is left to lua-cjson.
#include "bind/bind.h"

#include <stdio.h>
#include <string.h>

enum { VALUE = 1, SCHEMA, RULES, PLANS, OUT }; // on the stack
enum { NAMES = 1, HEADS, PROPERTIES, KNOWN };  // of a plan
enum { LEVELS_MAX = 200, SLOTS = 12 };

static void check(lua_State *L, int status)
{
    if (status < 0)
        luaL_error(L, "not enough memory");
}

static void add_bytes(lua_State *L, struct buffer *out, const char *bytes, size_t size)
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
    int size = snprintf(digits, sizeof digits, "%lld", (long long)lua_tointeger(L, index));
    add_bytes(L, out, digits, (size_t)size);
}

// What lua-cjson makes of the value.
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

// Adds the value on top of the stack, whose schema the table at `properties` has under the name at `name`; pops it.
static void add_member(lua_State *L, struct buffer *out, int name, int properties, int level)
{
    int value = lua_gettop(L);
    lua_pushvalue(L, name);
    lua_rawget(L, properties);
    add_value(L, out, value, value + 1, level);
    lua_settop(L, value - 1);
}

// Members that the schema does not order, after `written` others.
static void add_others(lua_State *L, struct buffer *out, int object, int plan, lua_Integer written, int level)
{
    lua_getfield(L, RULES, "others");
    lua_pushvalue(L, object);
    lua_rawgeti(L, plan, KNOWN);
    lua_call(L, 2, 1);
    int names = lua_gettop(L);
    lua_rawgeti(L, plan, PROPERTIES);
    for (lua_Integer i = 1; lua_rawgeti(L, names, i) != LUA_TNIL; i++) {
        add_bytes(L, out, written++ ? "," : "{", 1);
        add_string(L, out, names + 2);
        add_bytes(L, out, ":", 1);
        lua_pushvalue(L, names + 2);
        lua_rawget(L, object);
        add_member(L, out, names + 2, names + 1, level);
        lua_settop(L, names + 1);
    }
    lua_settop(L, names - 1);
}

static void add_object(lua_State *L, struct buffer *out, int object, int schema, int level)
{
    lua_pushvalue(L, schema);
    lua_gettable(L, PLANS);
    int plan = lua_gettop(L), names = plan + 1, heads = plan + 2, properties = plan + 3;
    lua_rawgeti(L, plan, NAMES);
    lua_rawgeti(L, plan, HEADS);
    lua_rawgeti(L, plan, PROPERTIES);
    lua_Integer count = (lua_Integer)lua_rawlen(L, names), written = 0;
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, names, i);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, object) != LUA_TNIL) {
            size_t size;
            lua_rawgeti(L, heads, i);
            const char *head = lua_tolstring(L, -1, &size);
            add_bytes(L, out, written++ ? "," : "{", 1);
            add_bytes(L, out, head, size);
            lua_pop(L, 1);
            add_member(L, out, properties + 1, properties, level);
        }
        lua_settop(L, properties);
    }
    lua_Integer all = count_members(L, object);
    if (written != all)
        add_others(L, out, object, plan, written, level);
    add_bytes(L, out, all ? "}" : "{}", all ? 1 : 2);
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

// A table whose schema says something of the order of keys in it.
static bool add_ordered(lua_State *L, struct buffer *out, int index, int schema, int level)
{
    if (!lua_istable(L, schema) || is_marked(L, index, "cjson.long_number"))
        return false;
    if (level > LEVELS_MAX)
        luaL_error(L, "cannot encode: nested deeper than %d levels", LEVELS_MAX);
    luaL_checkstack(L, SLOTS, "a deep value");
    if (!is_array(L, index)) {
        add_object(L, out, index, schema, level + 1);
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
    size_t size;
    const char *bytes;
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
    case LUA_TBOOLEAN:
        bytes = lua_toboolean(L, index) ? "true" : "false";
        add_bytes(L, out, bytes, strlen(bytes));
        return;
    case LUA_TUSERDATA:
        bytes = bind_check_bytes(L, index, &size);
        add_bytes(L, out, bytes, size);
        return;
    default:
        add_encoded(L, out, index);
    }
}

// encode(value, schema, rules) -> JSON text
static int f_encode(lua_State *L)
{
    luaL_checkany(L, VALUE);
    luaL_checktype(L, RULES, LUA_TTABLE);
    lua_settop(L, RULES);
    lua_getfield(L, RULES, "plans");
    struct buffer *out = bind_push_shared_buffer(L);
    add_value(L, out, VALUE, SCHEMA, 0);
    lua_pushlstring(L, out->data, out->size);
    bind_empty_shared_buffer(out);
    return 1;
}

static const luaL_Reg functions[] = {{"encode", f_encode}, {NULL, NULL}};

int luaopen_native_json(lua_State *L)
{
    luaL_newlib(L, functions);
    return 1;
}
