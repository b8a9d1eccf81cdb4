// SPDX-License-Identifier: Apache-2.0
// In the coverage build, every Lua state notes which lines of lua/sba/ run: one "PATH:LINE" a line is appended to
// SBA_COVERAGE_LINES, each once a process. The linker puts these functions in the place of Lua's (--wrap).
#include <fcntl.h>
#include <lua.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SEEN = 1 << 18 }; // a collision loses a line, which another process will note

static lua_Hook hook_of_host;
static unsigned char seen[SEEN];

lua_State *__real_lua_newstate(lua_Alloc allocate, void *data);
void __real_lua_sethook(lua_State *L, lua_Hook hook, int mask, int count);
lua_State *__wrap_lua_newstate(lua_Alloc allocate, void *data);
void __wrap_lua_sethook(lua_State *L, lua_Hook hook, int mask, int count);

// Opened each time: a descriptor that stays would be one more than tests of descriptors know.
static void note(const char *source, int line)
{
    const char *path = strstr(source, "/lua/sba/");
    char text[512];
    int length = path ? snprintf(text, sizeof text, "%s:%d\n", path + 1, line) : 0;
    int fd = path ? open(SBA_COVERAGE_LINES, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd < 0)
        return;
    if (write(fd, text, (size_t)length) < 0)
        seen[0] = 1; // nothing to be done
    close(fd);
}

static void on_event(lua_State *L, lua_Debug *event)
{
    if (event->event != LUA_HOOKLINE) {
        if (hook_of_host)
            hook_of_host(L, event);
        return;
    }
    lua_getinfo(L, "S", event);
    size_t place = ((uintptr_t)event->source * 31 + (size_t)event->currentline) * 2654435761u % SEEN;
    if (!seen[place])
        note(event->source, event->currentline);
    seen[place] = 1;
}

lua_State *__wrap_lua_newstate(lua_Alloc allocate, void *data)
{
    lua_State *L = __real_lua_newstate(allocate, data);
    if (L)
        __real_lua_sethook(L, on_event, LUA_MASKLINE, 0);
    return L;
}

void __wrap_lua_sethook(lua_State *L, lua_Hook hook, int mask, int count)
{
    hook_of_host = hook;
    __real_lua_sethook(L, on_event, mask | LUA_MASKLINE, count);
}
