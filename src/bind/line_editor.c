// SPDX-License-Identifier: Apache-2.0
// native.line_editor: reads lines from the terminal.
#include "core/base/line_editor.h"

#include "bind/bind.h"

static const char completer[] = "native.line_editor.complete"; // its key in the registry

static bool is_open;
static lua_State *reading; // the state of the running read, or NULL

// Argument: the line.
static int call_completer(lua_State *L)
{
    const LineInfo *line = lua_touserdata(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, completer);
    lua_pushlstring(L, line->buffer, (size_t)(line->lastchar - line->buffer));
    lua_pushinteger(L, line->cursor - line->buffer);
    lua_call(L, 2, 2);
    return 2;
}

// An error must not jump past libedit: a completer that raises one has found nothing.
static unsigned char complete(EditLine *edit, int unused)
{
    (void)unused;
    lua_State *L = reading;
    int top = lua_gettop(L);
    unsigned char outcome = CC_ERROR;
    lua_pushcfunction(L, call_completer);
    lua_pushlightuserdata(L, (void *)el_line(edit));
    bool found = lua_pcall(L, 1, 2, 0) == LUA_OK;
    if (found && lua_type(L, -2) == LUA_TSTRING) {
        outcome = el_insertstr(edit, lua_tostring(L, -2)) == 0 ? CC_REFRESH : CC_ERROR;
    } else if (found && lua_type(L, -1) == LUA_TSTRING) {
        printf("\n%s\n", lua_tostring(L, -1));
        outcome = CC_REDISPLAY;
    }
    lua_settop(L, top);
    return outcome;
}

static int f_open(lua_State *L)
{
    struct error error = {0};
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, completer);
    int outcome = is_open ? 0 : line_editor_open(complete, &error);
    is_open = outcome == 0;
    return bind_outcome(L, outcome, &error);
}

static void check_open(lua_State *L)
{
    if (!is_open || reading)
        luaL_error(L, is_open ? "the editor reads a line" : "the editor is not open");
}

static int f_read(lua_State *L)
{
    struct error error = {0};
    const char *line, *prompt = luaL_checkstring(L, 1);
    size_t size;
    check_open(L);
    reading = L;
    int got = line_editor_read(prompt, &line, &size, &error);
    reading = NULL;
    if (got < 0)
        return bind_fail(L, &error);
    if (got > 0)
        lua_pushlstring(L, line, size);
    else
        lua_pushnil(L);
    return 1;
}

static int f_remember(lua_State *L)
{
    check_open(L);
    line_editor_remember(luaL_checkstring(L, 1));
    return 0;
}

const luaL_Reg bind_line_editor[] = {{"open", f_open}, {"read", f_read}, {"remember", f_remember}, {NULL, NULL}};
