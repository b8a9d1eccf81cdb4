// SPDX-License-Identifier: Apache-2.0
// What the bindings share, see bind.h, and the list of them all.
#include "bind/bind.h"

#include "bundle.h"

#include <string.h>

enum { SHARED_BUFFER_KEPT = 1 << 20 }; // bytes of capacity

int luaopen_cjson(lua_State *L);
int luaopen_lpeg(lua_State *L);

static const luaL_Reg modules[] = {
    {"cjson", luaopen_cjson},
    {"lpeg", luaopen_lpeg},
    {"native.bundle", luaopen_native_bundle},
    {"native.file", luaopen_native_file},
    {"native.http", luaopen_native_http},
    {"native.edit", luaopen_native_edit},
    {"native.search", luaopen_native_search},
    {"native.secret", luaopen_native_secret},
    {"native.workspace", luaopen_native_workspace},
    {NULL, NULL},
};

static const struct {
    const char *name;
    const luaL_Reg *functions;
} plain_modules[] = {
    {"native.confine", bind_confine},         {"native.ending", bind_ending},   {"native.identity", bind_identity},
    {"native.interrupt", bind_interrupt},     {"native.process", bind_process}, {"native.text", bind_text},
    {"native.line_editor", bind_line_editor},
};

static int open_plain(lua_State *L)
{
    lua_newtable(L);
    luaL_setfuncs(L, lua_touserdata(L, lua_upvalueindex(1)), 0);
    return 1;
}

static int free_buffer(lua_State *L)
{
    buffer_free(lua_touserdata(L, 1));
    return 0;
}

void bind_open_all(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    luaL_setfuncs(L, modules, 0);
    for (size_t i = 0; i < sizeof plain_modules / sizeof *plain_modules; i++) {
        lua_pushlightuserdata(L, (void *)plain_modules[i].functions);
        lua_pushcclosure(L, open_plain, 1);
        lua_setfield(L, -2, plain_modules[i].name);
    }
    lua_pop(L, 1);
    bind_new_type(L, "native.buffer", NULL, free_buffer);
}

int64_t bind_milliseconds(lua_State *L, int index, lua_Number seconds)
{
    const lua_Number most = 1e12;
    luaL_argcheck(L, seconds >= 0, index, "seconds must not be negative");
    return (int64_t)((seconds < most ? seconds : most) * 1000);
}

int64_t bind_check_seconds(lua_State *L, int index)
{
    return bind_milliseconds(L, index, luaL_checknumber(L, index));
}

size_t bind_check_size(lua_State *L, int index)
{
    lua_Integer size = luaL_checkinteger(L, index);
    luaL_argcheck(L, size >= 0, index, "must not be negative");
    return (size_t)size;
}

void bind_new_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction close)
{
    const luaL_Reg metamethods[] = {{"__gc", close}, {"__close", close}, {NULL, NULL}};
    if (luaL_newmetatable(L, name)) {
        luaL_setfuncs(L, metamethods, 0);
        if (methods) {
            lua_newtable(L);
            luaL_setfuncs(L, methods, 0);
            lua_setfield(L, -2, "__index");
        }
    }
    lua_pop(L, 1);
}

void *bind_new_handle(lua_State *L, const char *type, size_t size, int values)
{
    void *handle = memset(lua_newuserdatauv(L, size, values), 0, size);
    luaL_setmetatable(L, type);
    return handle;
}

void bind_set_integer(lua_State *L, const char *name, lua_Integer value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

void bind_set_string(lua_State *L, const char *name, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, name);
}

void bind_set_boolean(lua_State *L, const char *name, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, name);
}

int bind_fail(lua_State *L, struct error *error)
{
    lua_pushnil(L);
    lua_createtable(L, 0, 2);
    bind_set_string(L, "code", error->code);
    bind_set_string(L, "message", error->message ? error->message : "out of memory");
    error_clear(error);
    return 2;
}

int bind_outcome(lua_State *L, int outcome, struct error *error)
{
    if (outcome < 0)
        return bind_fail(L, error);
    lua_pushboolean(L, 1);
    return 1;
}

int bind_push_owned(lua_State *L, const struct buffer *owner, struct error *error)
{
    if (!owner->data)
        return bind_fail(L, error);
    lua_pushstring(L, owner->data);
    return 1;
}

void bind_push_bytes(lua_State *L, struct buffer *buffer)
{
    lua_pushlstring(L, buffer->size ? buffer->data : "", buffer->size);
    buffer_free(buffer);
}

void bind_push_interrupt(lua_State *L, enum interrupt_reason reason)
{
    lua_createtable(L, 0, 2);
    bind_set_string(L, "code", interrupt_code(reason));
    bind_set_string(L, "message", interrupt_message(reason));
}

bool bind_call_tick(lua_State *L, int arguments)
{
    if (lua_pcall(L, arguments, 0, 0) == LUA_OK)
        return true;
    if (interrupt_reason() == INTERRUPT_NONE)
        return false;
    lua_pop(L, 1);
    return true;
}

struct buffer *bind_new_buffer(lua_State *L)
{
    return bind_new_handle(L, "native.buffer", sizeof(struct buffer), 0);
}

void bind_empty_shared_buffer(struct buffer *buffer)
{
    buffer->size = 0;
    if (buffer->capacity > SHARED_BUFFER_KEPT)
        buffer_free(buffer);
}

struct buffer *bind_push_shared_buffer(lua_State *L)
{
    static const char key = 0; // its address is the name
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TUSERDATA) {
        struct buffer *buffer = lua_touserdata(L, -1);
        bind_empty_shared_buffer(buffer); // a failed call may have left it full
        return buffer;
    }
    lua_pop(L, 1);
    struct buffer *buffer = bind_new_buffer(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
    return buffer;
}

const char *bind_check_path(lua_State *L, int index, struct error *error)
{
    size_t size;
    const char *path = luaL_checklstring(L, index, &size);
    if (strlen(path) == size)
        return path;
    error_set(error, "invalid", 0, "the path %s... holds a NUL byte", path);
    return NULL;
}

static bool listed(const char *name, const char *const names[])
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

void bind_check_options(lua_State *L, int index, const char *const names[])
{
    if (lua_isnoneornil(L, index))
        return;
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || !listed(lua_tostring(L, -2), names))
            luaL_argerror(L, index, lua_pushfstring(L, "unknown option '%s'", luaL_tolstring(L, -2, NULL)));
    }
}

const char **bind_check_strings(lua_State *L, int index, const char *what)
{
    index = lua_absindex(L, index);
    bool is_good = lua_istable(L, index);
    size_t size, count = is_good ? lua_rawlen(L, index) : 0;
    lua_createtable(L, (int)count, 0);
    const char **strings = lua_newuserdatauv(L, (count + 1) * sizeof *strings, 0);
    for (size_t i = 0; i < count && is_good; i++) {
        is_good = lua_rawgeti(L, index, (lua_Integer)i + 1) == LUA_TSTRING;
        strings[i] = lua_tolstring(L, -1, &size);
        is_good = is_good && strlen(strings[i]) == size;
        lua_rawseti(L, -3, (lua_Integer)i + 1);
    }
    if (!is_good)
        luaL_error(L, "%s must be a list of strings without NUL bytes", what);
    strings[count] = NULL;
    return strings;
}

// Pushes the option's value and returns its type.
static int push_option(lua_State *L, int index, const char *name)
{
    if (lua_isnoneornil(L, index)) {
        lua_pushnil(L);
        return LUA_TNIL;
    }
    return lua_getfield(L, index, name);
}

static void wrong_type(lua_State *L, int index, const char *name, const char *wanted)
{
    luaL_argerror(L, index, lua_pushfstring(L, "option '%s' must be %s", name, wanted));
}

lua_Integer bind_option_integer(lua_State *L, int index, const char *name, lua_Integer otherwise, lua_Integer minimum)
{
    bool is_given = push_option(L, index, name) != LUA_TNIL;
    int is_integer;
    lua_Integer value = lua_tointegerx(L, -1, &is_integer);
    if (is_given && (!is_integer || value < minimum))
        wrong_type(L, index, name, lua_pushfstring(L, "an integer from %I", (LUAI_UACINT)minimum));
    lua_pop(L, 1);
    return is_given ? value : otherwise;
}

lua_Number bind_option_number(lua_State *L, int index, const char *name, lua_Number otherwise)
{
    bool is_given = push_option(L, index, name) != LUA_TNIL;
    int is_number;
    lua_Number value = lua_tonumberx(L, -1, &is_number);
    if (is_given && !is_number)
        wrong_type(L, index, name, "a number");
    lua_pop(L, 1);
    return is_given ? value : otherwise;
}

bool bind_option_boolean(lua_State *L, int index, const char *name, bool otherwise)
{
    bool is_given = push_option(L, index, name) != LUA_TNIL, value = lua_toboolean(L, -1);
    if (is_given && !lua_isboolean(L, -1))
        wrong_type(L, index, name, "a boolean");
    lua_pop(L, 1);
    return is_given ? value : otherwise;
}

const char *bind_option_string(lua_State *L, int index, const char *name, size_t *size)
{
    int type = push_option(L, index, name);
    if (type != LUA_TNIL && type != LUA_TSTRING)
        wrong_type(L, index, name, "a string");
    const char *value = lua_tolstring(L, -1, size); // NULL of nil
    lua_pop(L, 1);
    return value;
}
