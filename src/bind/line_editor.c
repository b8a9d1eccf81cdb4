// SPDX-License-Identifier: Apache-2.0
// native.line_editor: reads lines from the terminal.
#include "core/base/line_editor.h"

#include "bind/bind.h"

#include <stdio.h>

enum { PROMPT = 1, COMPLETER = 2 }; // arguments of the running read

static lua_State *reading; // the state of the running read

static char *prompt(EditLine *unused)
{
    (void)unused;
    return (char *)lua_tostring(reading, PROMPT); // libedit only reads it
}

// An error must not jump past libedit: a completer that raises one has found nothing.
static unsigned char complete(EditLine *edit, int unused)
{
    (void)unused;
    lua_State *L = reading;
    unsigned char outcome = CC_ERROR;
    const LineInfo *line = el_line(edit);
    lua_pushvalue(L, COMPLETER);
    lua_pushlstring(L, line->buffer, (size_t)(line->lastchar - line->buffer));
    lua_pushinteger(L, line->cursor - line->buffer);
    bool found = lua_pcall(L, 2, 2, 0) == LUA_OK;
    if (found && lua_type(L, -2) == LUA_TSTRING) {
        outcome = el_insertstr(edit, lua_tostring(L, -2)) == 0 ? CC_REFRESH : CC_ERROR;
    } else if (found && lua_type(L, -1) == LUA_TSTRING) {
        printf("\n%s\n", lua_tostring(L, -1));
        outcome = CC_REDISPLAY;
    }
    lua_settop(L, COMPLETER);
    return outcome;
}

static int f_read(lua_State *L)
{
    struct error error = {0};
    int count = 0;
    luaL_checkstring(L, PROMPT);
    luaL_checktype(L, COMPLETER, LUA_TFUNCTION);
    lua_settop(L, COMPLETER);
    reading = L;
    EditLine *edit = line_editor_open(prompt, complete, &error);
    if (!edit)
        return bind_fail(L, &error);
    el_resize(edit);
    el_set(edit, EL_PREP_TERM, 1); // before the prompt, so that nothing typed is echoed twice
    const char *line = el_gets(edit, &count);
    if (interrupt_check(&error) < 0)
        return bind_fail(L, &error);
    if (line && count > 0)
        lua_pushlstring(L, line, (size_t)(line[count - 1] == '\n' ? count - 1 : count));
    else
        lua_pushnil(L);
    return 1;
}

static int f_remember(lua_State *L)
{
    line_editor_remember(luaL_checkstring(L, 1));
    return 0;
}

const luaL_Reg bind_line_editor[] = {{"read", f_read}, {"remember", f_remember}, {NULL, NULL}};
