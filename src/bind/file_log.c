// SPDX-License-Identifier: Apache-2.0
// native.file.log: a file to which lines are appended, of which spans, lines and JSON are read again.
#include "core/files/file_log.h"

#include "bind/bind.h"
#include "bind/bind_handles.h"
#include "core/base/cleanup.h"
#include "core/files/json_skim.h"

#include <sys/stat.h>

static const char log_type[] = "native.file.log", skim_type[] = "native.file.skim";

struct file_log *bind_check_log(lua_State *L, int index)
{
    struct file_log *log = luaL_checkudata(L, index, log_type);
    luaL_argcheck(L, log->fd >= 0, index, "the log is closed");
    return log;
}

struct file_log *bind_test_log(lua_State *L, int index)
{
    return luaL_testudata(L, index, log_type);
}

struct file_log *bind_new_log(lua_State *L)
{
    struct file_log *log = bind_new_handle(L, log_type, sizeof *log, 0);
    log->fd = -1;
    return log;
}

static int log_lock(lua_State *L)
{
    struct error error = {0};
    return bind_outcome(L, file_log_lock(bind_check_log(L, 1), &error), &error);
}

static int log_cut(lua_State *L)
{
    struct error error = {0};
    struct file_log *log = bind_check_log(L, 1);
    return bind_outcome(L, file_log_cut(log, (int64_t)bind_check_size(L, 2), &error), &error);
}

static int log_size(lua_State *L)
{
    struct stat status;
    int fd = bind_check_log(L, 1)->fd;
    lua_pushinteger(L, fstat(fd, &status) == 0 ? (lua_Integer)status.st_size : 0);
    return 1;
}

static int log_guard(lua_State *L)
{
    struct error error = {0};
    return bind_outcome(L, file_log_guard(bind_check_log(L, 1), &error), &error);
}

static int log_is_unchanged(lua_State *L)
{
    lua_pushboolean(L, file_log_is_unchanged(bind_check_log(L, 1)));
    return 1;
}

static int log_descriptor(lua_State *L)
{
    lua_pushinteger(L, bind_check_log(L, 1)->fd);
    return 1;
}

static int log_read(lua_State *L)
{
    const int fd = bind_check_log(L, 1)->fd;
    const int64_t offset = (int64_t)bind_check_size(L, 2);
    const struct part span = {.fd = fd, .offset = offset, .size = bind_check_size(L, 3)};
    struct parts all = {&span, 1, 0};
    struct error error = {0};
    luaL_Buffer bytes;
    if (parts_read(&all, luaL_buffinitsize(L, &bytes, span.size), span.size, &error) < 0)
        return bind_fail(L, &error);
    luaL_pushresultsize(&bytes, span.size);
    return 1;
}

static int skim_close(lua_State *L)
{
    json_skim_free(luaL_checkudata(L, 1, skim_type));
    return 0;
}

// skim(at, most, always?) -> text, {offset=, size=, left=} | nil, failure
static int log_skim(lua_State *L)
{
    const int fd = bind_check_log(L, 1)->fd;
    int64_t at = (int64_t)bind_check_size(L, 2);
    size_t most = bind_check_size(L, 3);
    const char *always = luaL_optstring(L, 4, NULL);
    struct json_skim *skim = bind_new_handle(L, skim_type, sizeof *skim, 0);
    *skim = (struct json_skim){0};
    struct error error = {0};
    if (json_skim(fd, at, most, always, skim, &error) < 0)
        return bind_fail(L, &error);

    lua_pushlstring(L, skim->text.data, skim->text.size);
    lua_createtable(L, 0, 3);
    bind_set_integer(L, "offset", skim->offset);
    bind_set_integer(L, "size", skim->end - skim->offset);
    lua_createtable(L, 0, (int)skim->count);
    for (size_t i = 0; i < skim->count; i++) {
        const struct json_span *span = &skim->spans[i];
        lua_pushlstring(L, skim->text.data + span->name, span->name_size);
        lua_createtable(L, 2, 0);
        lua_pushinteger(L, span->offset);
        lua_rawseti(L, -2, 1);
        lua_pushinteger(L, span->size);
        lua_rawseti(L, -2, 2);
        lua_rawset(L, -3);
    }
    lua_setfield(L, -2, "left");
    json_skim_free(skim);
    return 2;
}

// line(at, most) -> head, size, is_whole | nil at the end | nil, failure
static int log_line(lua_State *L)
{
    const struct file_log *log = bind_check_log(L, 1);
    int64_t at = (int64_t)bind_check_size(L, 2);
    size_t most = bind_check_size(L, 3);
    struct buffer *head = bind_new_buffer(L);
    struct error error = {0};
    bool is_whole;
    int64_t size = file_log_line(log, at, most, head, &is_whole, &error);
    if (size < 0)
        return bind_fail(L, &error);
    if (size == 0)
        return 0;
    bind_push_bytes(L, head);
    lua_pushinteger(L, size);
    lua_pushboolean(L, is_whole);
    return 3;
}

static int log_append(lua_State *L)
{
    struct file_log *log = bind_check_log(L, 1);
    bool goes_on = lua_toboolean(L, 3);
    struct parts parts = bind_push_parts(L, 2);
    if (!goes_on)
        ((struct part *)parts.part)[parts.count++] = (struct part){.bytes = "\n", .size = 1};

    struct error error = {0};
    int64_t size = file_log_append(log, &parts, goes_on, &error);
    if (size < 0)
        return bind_fail(L, &error);
    lua_pushinteger(L, size - (int64_t)parts_size(&parts));
    lua_pushinteger(L, size);
    return 2;
}

static int log_close(lua_State *L)
{
    struct file_log *log = luaL_checkudata(L, 1, log_type);
    cleanup_close(&log->fd);
    return 0;
}

static const luaL_Reg methods[] = {
    {"skim", log_skim},
    {"lock", log_lock},
    {"cut", log_cut},
    {"guard", log_guard},
    {"is_unchanged", log_is_unchanged},
    {"read", log_read},
    {"line", log_line},
    {"append", log_append},
    {"descriptor", log_descriptor},
    {"size", log_size},
    {"close", log_close},
    {NULL, NULL},
};

void bind_new_log_type(lua_State *L)
{
    bind_new_type(L, log_type, methods, log_close);
    bind_new_type(L, skim_type, NULL, skim_close);
}
