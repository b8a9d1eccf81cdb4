// SPDX-License-Identifier: Apache-2.0
// native.line_editor: reads lines from the terminal (stdin and stdout) by libedit: cursor keys, history, completion.
// There is one editor.
#include "bind/bind.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { ENTRIES_KEPT = 1000 };

enum { PROMPT = 1, COMPLETER = 2 }; // arguments of the running read

static EditLine *editor; // NULL: not open
static History *entries;
static lua_State *reading; // the state of the running read

// 1: a character, U+FFFD for a byte that is not UTF-8; 0: the end of the input; -1: work must stop. libedit's own
// reader would swallow Ctrl-C, and its signal handlers signal the whole group.
static int read_character(EditLine *unused, wchar_t *character)
{
    (void)unused;
    mbstate_t state = {0};
    while (interrupt_reason() == INTERRUPT_NONE) {
        struct pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
        char byte;
        if (poll(sources, 2, interrupt_poll_timeout(-1)) <= 0 || !sources[0].revents)
            continue;
        ssize_t got = read(STDIN_FILENO, &byte, 1);
        if (got <= 0)
            return (int)got;
        size_t length = mbrtowc(character, &byte, 1, &state);
        if (length == (size_t)-1)
            *character = 0xFFFD;
        if (length != (size_t)-2)
            return 1;
    }
    fputs(interrupt_signal() == SIGINT ? "^C\n" : "\n", stdout);
    return -1;
}

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

// Opens the editor, once. -1 and "not_a_terminal" if stdin or stdout is not a terminal that can move its cursor.
// Text is UTF-8, and LC_CTYPE is set so.
static int open_editor(struct error *error)
{
    // Keys that terminals send and libedit does not bind.
    static const char *const keys[][2] = {
        {"\\t", "complete"},           {"\\e[3~", "ed-delete-next-char"}, {"\\e[1~", "ed-move-to-beg"},
        {"\\e[4~", "ed-move-to-end"},  {"\\e[1;5C", "em-next-word"},      {"\\e[1;5D", "ed-prev-word"},
        {"^W", "ed-delete-prev-word"}, {"^R", "em-inc-search-prev"},
    };
    const char *name = getenv("TERM");
    HistEvent event;
    if (editor)
        return 0;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !name || !*name || strcmp(name, "dumb") == 0)
        return error_set(error, "not_a_terminal", 0, "stdin and stdout are no terminal on which lines can be edited");
    setlocale(LC_CTYPE, "C.UTF-8");
    FILE *silent = fopen("/dev/null", "we"); // for libedit's error messages
    entries = history_init();
    editor = entries && silent ? el_init("cynode-sba", stdin, stdout, silent) : NULL;
    if (!editor)
        return error_system(error, errno, "cannot prepare the terminal");
    el_set(editor, EL_TERMINAL, "xterm"); // which nearly every terminal follows
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_PROMPT, prompt);
    el_set(editor, EL_GETCFN, read_character);
    el_set(editor, EL_HIST, history, entries);
    history(entries, &event, H_SETSIZE, ENTRIES_KEPT);
    history(entries, &event, H_SETUNIQUE, 1);
    el_wset(editor, EL_ADDFN, L"complete", L"Completes a name", complete); // el_set would leak copies of the names
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        el_set(editor, EL_BIND, keys[i][0], keys[i][1], NULL);
    return 0;
}

static int f_read(lua_State *L)
{
    struct error error = {0};
    int count = 0;
    luaL_checkstring(L, PROMPT);
    luaL_checktype(L, COMPLETER, LUA_TFUNCTION);
    lua_settop(L, COMPLETER);
    reading = L;
    if (open_editor(&error) < 0)
        return bind_fail(L, &error);
    el_resize(editor);
    el_set(editor, EL_PREP_TERM, 1);            // before the prompt, so that nothing typed is echoed twice
    const char *line = el_gets(editor, &count); // NULL where work must stop
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
    const char *entry = luaL_checkstring(L, 1);
    HistEvent event;
    if (entries)
        history(entries, &event, H_ENTER, entry);
    return 0;
}

const luaL_Reg bind_line_editor[] = {{"read", f_read}, {"remember", f_remember}, {NULL, NULL}};
