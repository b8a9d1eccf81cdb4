// SPDX-License-Identifier: Apache-2.0
// Hosts the Lua state, see host.h.
#include "host.h"

#include "bind/bind.h"
#include "bundle.h"
#include "core/base/cleanup.h"
#include "core/base/ending.h"
#include "core/base/interrupt.h"
#include "core/text/secret.h"
#include "memory.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

enum { INSTRUCTIONS = 1000000 }; // about ten milliseconds, in which Lua may save what was done

// Makes the bundle the second searcher, after preload. The other two find nothing, because path and cpath are empty;
// they stay for `--lua`, where a script may set these.
static void seal_loader(lua_State *L)
{
    lua_getglobal(L, "package");
    lua_pushliteral(L, "");
    lua_setfield(L, -2, "path");
    lua_pushliteral(L, "");
    lua_setfield(L, -2, "cpath");
    lua_getfield(L, -1, "searchers");
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i >= 2; i--) {
        lua_rawgeti(L, -1, i);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushcfunction(L, bundle_searcher);
    lua_rawseti(L, -2, 2);
    lua_pop(L, 2);
}

static bool is_refused; // at least one block

// Refused twice running: by then Lua has collected all that it can.
static void *allocate(void *unused, void *block, size_t old_size, size_t size)
{
    static size_t refused;
    (void)unused;
    void *moved = memory_resize(block, old_size, size);
    if (size == 0) // of the collection in between
        return NULL;
    is_refused |= !moved;
    if (!moved && refused == size)
        ending_memory();
    refused = moved ? 0 : size;
    return moved;
}

// Runaway Lua is stopped by a count hook, which the signal of a cancel or of the deadline sets: a hook that is set from
// the start would slow down every instruction. A hook belongs to one Lua thread: coroutines have none.
static lua_State *main_state;

static void stop_when_interrupted(lua_State *L, lua_Debug *unused);

// Runs in a signal handler, where lua_sethook may be called.
static void stop(void)
{
    lua_sethook(main_state, stop_when_interrupted, LUA_MASKCOUNT, INSTRUCTIONS);
}

// Stops runaway Lua with an error whose code is the reason, as a wait in core would return it.
static void stop_when_interrupted(lua_State *L, lua_Debug *unused)
{
    (void)unused;
    enum interrupt_reason reason = interrupt_reason();
    if (reason == INTERRUPT_NONE) {
        lua_sethook(L, NULL, 0, 0);
        if (interrupt_reason() != INTERRUPT_NONE) // a signal came meanwhile
            stop();
        return;
    }
    if (interrupt_in_session()) // code that catches the error is stopped at its next instruction
        lua_sethook(L, stop_when_interrupted, LUA_MASKCOUNT, 1);
    bind_push_interrupt(L, reason);
    lua_error(L);
}

static int with_traceback(lua_State *L)
{
    luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
    return 1;
}

static int prepare_and_run(lua_State *L)
{
    int argc = (int)lua_tointeger(L, 1);
    char **argv = lua_touserdata(L, 2);

    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
    luaL_openlibs(L);
    seal_loader(L);
    bind_open_all(L);
    main_state = L;
    interrupt_on_stop(stop);

    lua_getglobal(L, "require");
    lua_pushstring(L, ending_inherited()->reason[0] ? "sba.crash_exit" : "sba.main");
    lua_call(L, 1, 1);
    lua_createtable(L, argc, 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i);
    }
    lua_call(L, 1, 1);
    return 1;
}

static void print_error(const char *message)
{
    cleanup_buffer struct buffer clean = {0};
    if (buffer_append(&clean, message, strlen(message)) < 0 || secret_redact(&clean, 0) < 0)
        fputs("cynode-sba: out of memory\n", stderr);
    else
        fprintf(stderr, "cynode-sba: %.*s\n", (int)clean.size, clean.data);
}

int host_run(int argc, char **argv)
{
    int status = -1;
    lua_State *L = lua_newstate(allocate, NULL);
    if (!L) {
        fputs("cynode-sba: cannot start: out of memory\n", stderr);
        return -1;
    }
    lua_gc(L, LUA_GCSTOP); // modules that are loaded now stay; the module that is called starts it
    lua_pushcfunction(L, with_traceback);
    lua_pushcfunction(L, prepare_and_run);
    lua_pushinteger(L, argc);
    lua_pushlightuserdata(L, argv);
    if (lua_pcall(L, 2, 1, 1) == LUA_OK)
        status = (int)lua_tointeger(L, -1);
    else
        print_error(lua_tostring(L, -1));
    if (status == ENDING_UNWRITABLE && is_refused) // Lua may have had no room to say so
        fputs("cynode-sba: out of memory\n", stderr);
#ifndef NDEBUG
    lua_close(L); // for the leak checker; in a release the kernel frees all
#endif
    return status;
}
