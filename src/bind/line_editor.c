// SPDX-License-Identifier: Apache-2.0
// native.line_editor: reads lines from a terminal.
#include "core/base/line_editor.h"

#include "bind/bind.h"

#define EDITOR "native.editor"

struct handle {
    struct line_editor *editor; // NULL: closed
    lua_State *reading;         // the state of the running read, or NULL
};

enum { COMPLETER = 1 };                                        // user value of a handle
enum { READ_HANDLE = 1, READ_PROMPT = 2, READ_COMPLETER = 3 }; // stack indexes in read

struct request {
    const char *line;
    size_t size, cursor;
    struct line_completion *found;
};

static void take_text(lua_State *L, int index, struct buffer *into)
{
    size_t size;
    const char *text = lua_tolstring(L, index, &size);
    if (text && buffer_append(into, text, size) < 0)
        luaL_error(L, "not enough memory");
}

// Calls the completer, which is the upvalue: complete(line, cursor) -> insert?, show?
static int call_completer(lua_State *L)
{
    const struct request *request = lua_touserdata(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushlstring(L, request->line, request->size);
    lua_pushinteger(L, (lua_Integer)request->cursor);
    lua_call(L, 2, 2);
    take_text(L, -2, &request->found->insert);
    take_text(L, -1, &request->found->show);
    return 0;
}

// An error must not jump past libedit: a completer that raises one has found nothing.
static void complete(void *context, const char *line, size_t size, size_t cursor, struct line_completion *found)
{
    lua_State *L = ((struct handle *)context)->reading;
    struct request request = {line, size, cursor, found};
    lua_pushvalue(L, READ_COMPLETER);
    lua_pushlightuserdata(L, &request);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        lua_pop(L, 1);
}

static struct handle *check_handle(lua_State *L)
{
    struct handle *handle = luaL_checkudata(L, READ_HANDLE, EDITOR);
    luaL_argcheck(L, handle->editor, READ_HANDLE, "the editor is closed");
    luaL_argcheck(L, !handle->reading, READ_HANDLE, "the editor reads a line");
    return handle;
}

static int f_open(lua_State *L)
{
    struct error error = {0};
    luaL_checktype(L, 1, LUA_TFUNCTION);
    struct handle *handle = bind_new_handle(L, EDITOR, sizeof *handle, COMPLETER);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, COMPLETER);
    handle->editor = line_editor_open(complete, handle, &error);
    return handle->editor ? 1 : bind_fail(L, &error);
}

static int m_read(lua_State *L)
{
    struct error error = {0};
    const char *line;
    size_t size;
    struct handle *handle = check_handle(L);
    const char *prompt = luaL_checkstring(L, READ_PROMPT);
    lua_settop(L, READ_PROMPT);
    lua_getiuservalue(L, READ_HANDLE, COMPLETER);
    lua_pushcclosure(L, call_completer, 1); // to READ_COMPLETER

    handle->reading = L;
    int got = line_editor_read(handle->editor, prompt, &line, &size, &error);
    handle->reading = NULL;
    if (got < 0)
        return bind_fail(L, &error);
    if (got == 0)
        lua_pushnil(L);
    else
        lua_pushlstring(L, line, size);
    return 1;
}

static int m_remember(lua_State *L)
{
    line_editor_remember(check_handle(L)->editor, luaL_checkstring(L, 2));
    return 0;
}

static int m_close(lua_State *L)
{
    struct handle *handle = luaL_checkudata(L, 1, EDITOR);
    luaL_argcheck(L, !handle->reading, 1, "the editor reads a line");
    line_editor_close(handle->editor);
    handle->editor = NULL;
    return 0;
}

static const luaL_Reg methods[] = {{"read", m_read}, {"remember", m_remember}, {"close", m_close}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"open", f_open}, {NULL, NULL}};

int luaopen_native_line_editor(lua_State *L)
{
    bind_new_type(L, EDITOR, methods, m_close);
    luaL_newlib(L, functions);
    return 1;
}
