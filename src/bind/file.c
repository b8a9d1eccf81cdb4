// SPDX-License-Identifier: Apache-2.0
// native.file: files of the runner itself, outside the workspace, and its standard streams.
#include "core/files/file.h"

#include "bind/bind.h"
#include "core/files/file_replace.h"
#include "core/files/own_files.h"
#include "core/files/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOG_TYPE "native.file.log"

enum { MAX_TIMEOUT_SECONDS = 1000000 };

// A path must not have a NUL: the rest would be lost.
static const char *check_path(lua_State *L, int index)
{
    size_t size;
    const char *path = luaL_checklstring(L, index, &size);
    luaL_argcheck(L, strlen(path) == size, index, "a path must not hold a NUL");
    return path;
}

// read(path, limit, options?) -> bytes, began | nil, failure
static int f_read(lua_State *L)
{
    static const char *const names[] = {"regular", NULL};
    const char *path = check_path(L, 1);
    lua_Integer limit = luaL_checkinteger(L, 2);
    luaL_argcheck(L, limit >= 0, 2, "must not be negative");
    bind_check_options(L, 3, names);
    bool regular = bind_option_boolean(L, 3, "regular", false);

    struct buffer *buffer = bind_new_buffer(L);
    struct error error = {0};
    int64_t began = file_read(path, (size_t)limit, regular, buffer, &error);
    if (began < 0)
        return bind_fail(L, &error);
    lua_pushlstring(L, buffer->data, buffer->size);
    buffer_free(buffer);
    lua_pushnumber(L, (lua_Number)began / 1000);
    return 2;
}

// Makes a run of iovec, in a new userdata on the stack, of the strings of the table at index, with room for one more.
static struct iovec *push_parts(lua_State *L, int index, size_t *count)
{
    luaL_checktype(L, index, LUA_TTABLE);
    *count = (size_t)lua_rawlen(L, index);
    struct iovec *parts = lua_newuserdatauv(L, (*count + 1) * sizeof *parts, 0);
    for (size_t i = 0; i < *count; i++) {
        if (lua_rawgeti(L, index, (lua_Integer)i + 1) != LUA_TSTRING)
            luaL_argerror(L, index, "every part must be a string");
        // The table keeps the string alive.
        parts[i].iov_base = (void *)lua_tolstring(L, -1, &parts[i].iov_len);
        lua_pop(L, 1);
    }
    return parts;
}

// replace(path, parts, options?) -> "renamed" | "in_place" | nil, failure
static int f_replace(lua_State *L)
{
    static const char *const names[] = {"durable", "mode", NULL};
    size_t count;
    const char *path = check_path(L, 1);
    bind_check_options(L, 3, names);
    bool durable = bind_option_boolean(L, 3, "durable", true);
    mode_t mode = (mode_t)bind_option_integer(L, 3, "mode", 0644, 0);
    const struct iovec *parts = push_parts(L, 2, &count);

    enum file_way way;
    struct error error = {0};
    if (file_replace(path, parts, count, mode, durable, &way, &error) < 0)
        return bind_fail(L, &error);
    lua_pushstring(L, way == FILE_RENAMED ? "renamed" : "in_place");
    return 1;
}

// keep_room(path, size) -> true | nil, failure
static int f_keep_room(lua_State *L)
{
    struct error error = {0};
    const char *path = check_path(L, 1);
    lua_Integer size = luaL_checkinteger(L, 2);
    luaL_argcheck(L, size > 0, 2, "a size is above 0");
    return bind_outcome(L, file_keep_room(path, (size_t)size, &error), &error);
}

static int *new_log(lua_State *L, int descriptor)
{
    int *fd = lua_newuserdatauv(L, sizeof *fd, 0);
    *fd = descriptor;
    luaL_setmetatable(L, LOG_TYPE);
    return fd;
}

// append(path, options?) -> log | nil, failure
static int f_append(lua_State *L)
{
    static const char *const names[] = {"empty", "create", "whole", NULL};
    const char *path = check_path(L, 1);
    bind_check_options(L, 2, names);
    bool empty = bind_option_boolean(L, 2, "empty", false), create = bind_option_boolean(L, 2, "create", true);
    bool whole = bind_option_boolean(L, 2, "whole", false);

    int *fd = new_log(L, -1);
    struct error error = {0};
    *fd = file_open_log(path, create, &error);
    if (*fd < 0 || (!whole && file_cut_log(*fd, empty, &error) < 0))
        return bind_fail(L, &error);
    return 1;
}

// log:lock() -> true | nil, failure
static int log_lock(lua_State *L)
{
    const int *fd = luaL_checkudata(L, 1, LOG_TYPE);
    struct error error = {0};
    return bind_outcome(L, file_lock_log(*fd, &error), &error);
}

// log:cut(empty) -> true | nil, failure
static int log_cut(lua_State *L)
{
    const int *fd = luaL_checkudata(L, 1, LOG_TYPE);
    struct error error = {0};
    return bind_outcome(L, file_cut_log(*fd, lua_toboolean(L, 2), &error), &error);
}

// adopt(descriptor) -> log
static int f_adopt(lua_State *L)
{
    new_log(L, (int)luaL_checkinteger(L, 1));
    return 1;
}

// memory() -> log | nil, failure
static int f_memory(lua_State *L)
{
    struct error error = {0};
    int *fd = new_log(L, -1);
    *fd = memfd_create("journal", MFD_CLOEXEC);
    if (*fd >= 0)
        return 1;
    error_system(&error, errno, "cannot keep a file in memory");
    return bind_fail(L, &error);
}

static int log_descriptor(lua_State *L)
{
    lua_pushinteger(L, *(const int *)luaL_checkudata(L, 1, LOG_TYPE));
    return 1;
}

// log:read(limit) -> bytes | nil, failure
static int log_read(lua_State *L)
{
    const int *fd = luaL_checkudata(L, 1, LOG_TYPE);
    struct error error = {0};
    struct buffer *buffer = bind_new_buffer(L);
    if (file_read_log(*fd, (size_t)luaL_checkinteger(L, 2), buffer, &error) < 0)
        return bind_fail(L, &error);
    lua_pushlstring(L, buffer->data, buffer->size);
    buffer_free(buffer);
    return 1;
}

static int log_close(lua_State *L)
{
    int *fd = luaL_checkudata(L, 1, LOG_TYPE);
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return 0;
}

// log:append(parts) -> true | nil, failure
static int log_append(lua_State *L)
{
    const int *fd = luaL_checkudata(L, 1, LOG_TYPE);
    luaL_argcheck(L, *fd >= 0, 1, "the log is closed");
    size_t count;
    struct iovec *parts = push_parts(L, 2, &count);
    parts[count] = (struct iovec){.iov_base = (void *)"\n", .iov_len = 1};

    struct error error = {0};
    if (file_write_parts(*fd, parts, count + 1, &error) < 0)
        return bind_fail(L, &error);
    lua_pushboolean(L, 1);
    return 1;
}

static int64_t check_timeout(lua_State *L, int index)
{
    lua_Number seconds = luaL_checknumber(L, index);
    luaL_argcheck(L, seconds >= 0 && seconds <= MAX_TIMEOUT_SECONDS, index, "must be 0 to 1000000 seconds");
    return (int64_t)(seconds * 1000);
}

// write(fd, bytes, timeout, whole?) -> whether all was written, count of bytes that were
static int f_write(lua_State *L)
{
    size_t size;
    int fd = (int)luaL_checkinteger(L, 1);
    const char *bytes = luaL_checklstring(L, 2, &size);
    int64_t timeout = check_timeout(L, 3), whole = lua_isnoneornil(L, 4) ? INT64_MAX : check_timeout(L, 4);
    size_t written = stream_write(fd, bytes, size, timeout, whole);
    lua_pushboolean(L, written == size);
    lua_pushinteger(L, (lua_Integer)written);
    return 2;
}

// make_directory(path) -> true | nil, failure
static int f_make_directory(lua_State *L)
{
    struct error error = {0};
    if (file_make_directory(check_path(L, 1), &error) < 0)
        return bind_fail(L, &error);
    lua_pushboolean(L, 1);
    return 1;
}

// make_private_directory(path) -> true | nil, failure
static int f_make_private_directory(lua_State *L)
{
    struct error error = {0};
    return bind_outcome(L, file_make_private_directory(check_path(L, 1), &error), &error);
}

// make_temporary_directory(above) -> path | nil, failure
static int f_make_temporary_directory(lua_State *L)
{
    struct error error = {0};
    char *path = file_make_temporary_directory(check_path(L, 1), &error);
    if (!path)
        return bind_fail(L, &error);
    lua_pushstring(L, path);
    free(path);
    return 1;
}

// is_open(path) -> boolean
static int f_is_open(lua_State *L)
{
    lua_pushboolean(L, file_is_open(check_path(L, 1)));
    return 1;
}

// remove_directory(path) -> true | nil, failure
static int f_remove_directory(lua_State *L)
{
    struct error error = {0};
    if (file_remove_directory(check_path(L, 1), &error) < 0)
        return bind_fail(L, &error);
    lua_pushboolean(L, 1);
    return 1;
}

// own(path) -> true | nil, failure
static int f_own(lua_State *L)
{
    struct error error = {0};
    if (own_files_add(check_path(L, 1), &error) < 0)
        return bind_fail(L, &error);
    lua_pushboolean(L, 1);
    return 1;
}

// terminal_columns(fd) -> columns, rows | nil
static int f_terminal_columns(lua_State *L)
{
    int rows = 0, columns = stream_columns((int)luaL_checkinteger(L, 1), &rows);
    if (!columns) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, columns);
    lua_pushinteger(L, rows);
    return 2;
}

static const luaL_Reg functions[] = {
    {"read", f_read},
    {"replace", f_replace},
    {"keep_room", f_keep_room},
    {"append", f_append},
    {"adopt", f_adopt},
    {"memory", f_memory},
    {"write", f_write},
    {"make_directory", f_make_directory},
    {"make_private_directory", f_make_private_directory},
    {"make_temporary_directory", f_make_temporary_directory},
    {"is_open", f_is_open},
    {"remove_directory", f_remove_directory},
    {"own", f_own},
    {"terminal_columns", f_terminal_columns},
    {NULL, NULL},
};

static const luaL_Reg log_methods[] = {{"read", log_read}, {"descriptor", log_descriptor}, {"lock", log_lock},
                                       {"cut", log_cut},   {"append", log_append},         {"close", log_close},
                                       {NULL, NULL}};

int luaopen_native_file(lua_State *L)
{
    bind_new_type(L, LOG_TYPE, log_methods, log_close);
    luaL_newlib(L, functions);
    return 1;
}
