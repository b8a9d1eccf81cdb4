// SPDX-License-Identifier: Apache-2.0
// native.json.encode: Lua values as JSON text, keys in the order of a schema. Nothing that is written holds a secret:
// each string is redacted before it is quoted.
#include "core/json.h"

#include "bind/bind.h"
#include "core/cleanup.h"
#include "core/secret.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 200, STACK_PER_LEVEL = 12, KEPT_BYTES = 64 << 10 };

struct encoder {
    lua_State *L;
    struct buffer *out;
    struct buffer *keys; // a stack of struct key, one run for each object that is being written
    int plans;           // index of the table schema -> plan
    int depth;
};

struct key {
    const char *bytes; // of the object's own key
    size_t size;
};

static void need(struct encoder *encoder, int status)
{
    if (status < 0)
        luaL_error(encoder->L, "cannot encode: not enough memory");
}

static void put(struct encoder *encoder, const char *bytes, size_t size)
{
    need(encoder, buffer_append(encoder->out, bytes, size));
}

static void put_byte(struct encoder *encoder, char byte)
{
    need(encoder, buffer_append_byte(encoder->out, byte));
}

static int quote(const char *bytes, size_t size, struct buffer *out)
{
    cleanup_buffer struct buffer clean = {0};
    int found = secret_redact(bytes, size, &clean);
    if (found < 0)
        return -1;
    return found ? json_quote(clean.data, clean.size, out) : json_quote(bytes, size, out);
}

static void encode_value(struct encoder *encoder, int schema);

// Writes a value (on top of the stack, popped with the schema below it) after its key.
static void encode_member_value(struct encoder *encoder)
{
    encode_value(encoder, lua_gettop(encoder->L) - 1);
    lua_pop(encoder->L, 2);
}

// Writes the members that the plan names and returns how many there were.
static size_t encode_planned(struct encoder *encoder, int object, int plan)
{
    lua_State *L = encoder->L;
    lua_Integer end = (lua_Integer)lua_rawlen(L, plan);
    size_t written = 0;
    for (lua_Integer i = 1; i < end; i += BIND_JSON_PLAN_STRIDE) {
        lua_rawgeti(L, plan, i);
        int type = lua_rawget(L, object);
        if (type == LUA_TNIL) {
            lua_pop(L, 1);
            continue;
        }
        size_t size;
        lua_rawgeti(L, plan, i + 1);
        const char *quoted = lua_tolstring(L, -1, &size);
        if (written++)
            put_byte(encoder, ',');
        put(encoder, quoted, size);
        lua_pop(L, 1);
        if (type == LUA_TTABLE) { // only there a schema has something to say
            lua_rawgeti(L, plan, i + 2);
            lua_insert(L, -2);
            encode_member_value(encoder);
        } else {
            encode_value(encoder, 0);
            lua_pop(L, 1);
        }
    }
    return written;
}

// Checks that every key is a string and counts them.
static size_t count_keys(lua_State *L, int object)
{
    size_t count = 0;
    for (lua_pushnil(L); lua_next(L, object); lua_pop(L, 1), count++)
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "cannot encode: an object with a key that is a %s", luaL_typename(L, -2));
    return count;
}

// Collects the keys that the plan (may be nil) does not name.
static void collect_keys(struct encoder *encoder, int object, int plan)
{
    lua_State *L = encoder->L;
    bool planned = lua_istable(L, plan);
    for (lua_pushnil(L); lua_next(L, object); lua_pop(L, 1)) {
        if (planned) {
            lua_pushvalue(L, -2);
            int known = lua_rawget(L, plan) != LUA_TNIL;
            lua_pop(L, 1);
            if (known)
                continue;
        }
        struct key key;
        key.bytes = lua_tolstring(L, -2, &key.size);
        need(encoder, buffer_append(encoder->keys, &key, sizeof key));
    }
}

static int in_byte_order(const void *a, const void *b)
{
    const struct key *left = a, *right = b;
    size_t shorter = left->size < right->size ? left->size : right->size;
    int order = memcmp(left->bytes, right->bytes, shorter);
    return order ? order : (left->size > right->size) - (left->size < right->size);
}

// Writes the members that no plan names, in byte order. schema may be nil.
static void encode_rest(struct encoder *encoder, int schema, int object, int plan, size_t written)
{
    lua_State *L = encoder->L;
    size_t before = encoder->keys->size;
    collect_keys(encoder, object, plan);
    size_t end = encoder->keys->size;
    qsort(encoder->keys->data + before, (end - before) / sizeof(struct key), sizeof(struct key), in_byte_order);
    bind_push_part(L, schema, "properties");
    int properties = lua_gettop(L);
    for (size_t at = before; at < end; at += sizeof(struct key)) {
        struct key key;
        memcpy(&key, encoder->keys->data + at, sizeof key);
        if (written++)
            put_byte(encoder, ',');
        need(encoder, quote(key.bytes, key.size, encoder->out));
        put_byte(encoder, ':');
        bind_push_part(L, properties, key.bytes);
        lua_pushlstring(L, key.bytes, key.size);
        lua_rawget(L, object);
        encode_member_value(encoder);
    }
    lua_pop(L, 1);
    encoder->keys->size = before;
}

static void encode_object(struct encoder *encoder, int schema, int object)
{
    lua_State *L = encoder->L;
    size_t written = 0, count = count_keys(L, object);
    if (lua_istable(L, schema))
        bind_push_json_plan(L, encoder->plans, schema, encoder->out);
    else
        lua_pushnil(L);
    int plan = lua_gettop(L);
    put_byte(encoder, '{');
    if (lua_istable(L, plan))
        written = encode_planned(encoder, object, plan);
    if (written < count)
        encode_rest(encoder, schema, object, plan, written);
    put_byte(encoder, '}');
    lua_pop(L, 1);
}

static void encode_array(struct encoder *encoder, int schema, int array)
{
    lua_State *L = encoder->L;
    lua_Integer count = (lua_Integer)lua_rawlen(L, array), keys = 0;
    for (lua_pushnil(L); lua_next(L, array); lua_pop(L, 1))
        keys++;
    if (keys != count)
        luaL_error(L, "cannot encode: an array with holes or other keys");
    bind_push_part(L, schema, "items");
    put_byte(encoder, '[');
    for (lua_Integer i = 1; i <= count; i++) {
        if (i > 1)
            put_byte(encoder, ',');
        lua_rawgeti(L, array, i);
        encode_value(encoder, lua_gettop(L) - 1);
        lua_pop(L, 1);
    }
    put_byte(encoder, ']');
    lua_pop(L, 1);
}

static void encode_table(struct encoder *encoder, int schema, int table)
{
    if (++encoder->depth > MAX_DEPTH)
        luaL_error(encoder->L, "cannot encode: nested deeper than %d", MAX_DEPTH);
    luaL_checkstack(encoder->L, STACK_PER_LEVEL, "cannot encode");
    if (bind_is_array(encoder->L, table))
        encode_array(encoder, schema, table);
    else
        encode_object(encoder, schema, table);
    encoder->depth--;
}

static void encode_number(struct encoder *encoder)
{
    lua_State *L = encoder->L;
    if (lua_isinteger(L, -1)) {
        need(encoder, json_integer(lua_tointeger(L, -1), encoder->out));
        return;
    }
    lua_Number value = lua_tonumber(L, -1);
    if (!isfinite(value))
        luaL_error(L, "cannot encode: a number that is not finite");
    need(encoder, json_float(value, encoder->out));
}

static void encode_string(struct encoder *encoder)
{
    size_t size;
    const char *bytes = lua_tolstring(encoder->L, -1, &size);
    need(encoder, quote(bytes, size, encoder->out));
}

// Writes the value on top of the stack, which stays. schema is the index of its schema, no table where there is none.
static void encode_value(struct encoder *encoder, int schema)
{
    lua_State *L = encoder->L;
    switch (lua_type(L, -1)) {
    case LUA_TTABLE:
        encode_table(encoder, schema, lua_gettop(L));
        return;
    case LUA_TSTRING:
        encode_string(encoder);
        return;
    case LUA_TNUMBER:
        encode_number(encoder);
        return;
    case LUA_TBOOLEAN:
        put(encoder, lua_toboolean(L, -1) ? "true" : "false", lua_toboolean(L, -1) ? 4 : 5);
        return;
    case LUA_TLIGHTUSERDATA:
        if (!lua_touserdata(L, -1)) {
            put(encoder, "null", 4);
            return;
        }
        break;
    }
    luaL_error(L, "cannot encode: a %s", luaL_typename(L, -1));
}

// Upvalues of encode: the plans, and two buffers that a call borrows. One that an error kept is not given back.
enum { PLANS = 1, OUT, KEYS };

static struct buffer *borrow_buffer(lua_State *L, int upvalue)
{
    lua_pushvalue(L, lua_upvalueindex(upvalue));
    struct buffer *buffer = lua_touserdata(L, -1);
    if (!buffer)
        return bind_new_buffer(L);
    lua_pushnil(L);
    lua_replace(L, lua_upvalueindex(upvalue));
    return buffer;
}

static void give_back(lua_State *L, int index, int upvalue)
{
    struct buffer *buffer = lua_touserdata(L, index);
    buffer->size = 0;
    if (buffer->capacity > KEPT_BYTES)
        buffer_free(buffer);
    lua_pushvalue(L, index);
    lua_replace(L, lua_upvalueindex(upvalue));
}

// encode(value, schema?) -> JSON text
static int f_encode(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 2);
    if (!lua_isnil(L, 2))
        luaL_checktype(L, 2, LUA_TTABLE);
    struct encoder encoder = {.L = L, .plans = lua_upvalueindex(PLANS)};
    encoder.out = borrow_buffer(L, OUT);
    int out = lua_gettop(L);
    encoder.keys = borrow_buffer(L, KEYS);
    int keys = lua_gettop(L);
    lua_pushvalue(L, 1);
    encode_value(&encoder, 2);
    lua_pushlstring(L, encoder.out->data, encoder.out->size);
    give_back(L, out, OUT);
    give_back(L, keys, KEYS);
    return 1;
}

// A table that keeps none of its keys alive.
static void push_weak_table(lua_State *L)
{
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
}

void bind_push_json_encode(lua_State *L)
{
    push_weak_table(L);
    lua_pushnil(L);
    lua_pushnil(L);
    lua_pushcclosure(L, f_encode, 3);
}
