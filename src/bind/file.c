// SPDX-License-Identifier: Apache-2.0
// native.file: files of the runner itself, outside the workspace, and its standard streams.
#include "core/files/file.h"

#include "bind/bind.h"
#include "bind/bind_handles.h"
#include "core/files/file_log.h"
#include "core/files/file_replace.h"
#include "core/files/long_text.h"
#include "core/files/stream.h"
#include "core/workspace/own_files.h"

#include <math.h>
#include <string.h>

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
    size_t limit = bind_check_size(L, 2);
    bind_check_options(L, 3, names);
    bool regular = bind_option_boolean(L, 3, "regular", false);

    struct buffer *buffer = bind_new_buffer(L);
    struct error error = {0};
    int64_t began = file_read(path, limit, regular, buffer, &error);
    if (began < 0)
        return bind_fail(L, &error);
    bind_push_bytes(L, buffer);
    lua_pushnumber(L, (lua_Number)began / 1000);
    return 2;
}

static lua_Integer integer_at(lua_State *L, int list, lua_Integer i)
{
    lua_rawgeti(L, list, i);
    lua_Integer value = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : -1;
    luaL_argcheck(L, value >= 0, list, "every part must be a string, or offset and size of a span");
    lua_pop(L, 1);
    return value;
}

lua_Integer bind_check_part(lua_State *L, int list, lua_Integer i, struct part *part)
{
    bool is_string = lua_rawgeti(L, list, i) == LUA_TSTRING;
    *part = (struct part){.fd = -1};
    if (is_string)
        part->bytes = lua_tolstring(L, -1, &part->size);
    lua_pop(L, 1);
    if (is_string)
        return 1;
    part->offset = integer_at(L, list, i);
    part->size = (size_t)integer_at(L, list, i + 1);
    lua_getfield(L, list, "from");
    part->fd = bind_check_log(L, -1)->fd;
    lua_pop(L, 1);
    return 2;
}

struct parts bind_push_parts(lua_State *L, int index)
{
    luaL_checktype(L, index, LUA_TTABLE);
    lua_Integer length = (lua_Integer)lua_rawlen(L, index);
    struct part *parts = lua_newuserdatauv(L, ((size_t)length + 1) * sizeof *parts, 0);
    size_t count = 0;
    for (lua_Integer i = 1; i <= length; count++)
        i += bind_check_part(L, index, i, &parts[count]);
    return (struct parts){parts, count, 0};
}

// replace(path, parts, options?) -> "renamed" | "in_place", size | nil, failure
static int f_replace(lua_State *L)
{
    static const char *const names[] = {"durable", "mode", "until_when", NULL};
    const char *path = check_path(L, 1);
    bind_check_options(L, 3, names);
    bool durable = bind_option_boolean(L, 3, "durable", true);
    lua_Number at = bind_option_number(L, 3, "until_when", HUGE_VAL);
    int64_t until = at < HUGE_VAL ? bind_milliseconds(L, 3, at) : INT64_MAX;
    mode_t mode = (mode_t)bind_option_integer(L, 3, "mode", 0644, 0);
    const struct parts parts = bind_push_parts(L, 2);

    enum file_way way;
    struct error error = {0};
    if (file_replace(path, &parts, mode, durable ? until : FILE_UNSYNCED, &way, &error) < 0)
        return bind_fail(L, &error);
    lua_pushstring(L, way == FILE_RENAMED ? "renamed" : "in_place");
    lua_pushinteger(L, (lua_Integer)parts_size(&parts));
    return 2;
}

// keep_directory(path, known?) -> what it is: device, inode, mode | nil
static int f_keep_directory(lua_State *L)
{
    static const char *const names[] = {"device", "inode", "mode", NULL};
    const char *path = check_path(L, 1);
    bind_check_options(L, 2, names);
    struct file_directory directory = {
        .device = (dev_t)bind_option_integer(L, 2, "device", 0, 0),
        .inode = (ino_t)bind_option_integer(L, 2, "inode", 0, 0),
        .mode = (mode_t)bind_option_integer(L, 2, "mode", 0, 0),
    };
    if (file_replace_keep(path, &directory) < 0)
        return 0;
    lua_createtable(L, 0, 3);
    bind_set_integer(L, "device", (lua_Integer)directory.device);
    bind_set_integer(L, "inode", (lua_Integer)directory.inode);
    bind_set_integer(L, "mode", (lua_Integer)directory.mode);
    return 1;
}

static int f_keep_room(lua_State *L)
{
    struct error error = {0};
    const char *path = check_path(L, 1);
    lua_Integer size = luaL_checkinteger(L, 2);
    luaL_argcheck(L, size > 0, 2, "a size is above 0");
    return bind_outcome(L, file_keep_room(path, (size_t)size, &error), &error);
}

// The text at 1: bytes, or file, offset and size; cut, encoding, most.
static struct long_text check_text(lua_State *L)
{
    static const char *const cuts[] = {"none", "start", "end", "both", NULL}; // as SECRET_CUT_*
    static const char *const encodings[] = {"utf-8", "base64", NULL};
    struct long_text text = {.fd = -1};
    luaL_checktype(L, 1, LUA_TTABLE);
    text.bytes = bind_option_string(L, 1, "bytes", &text.size);
    text.most = bind_option_integer(L, 1, "most", INT64_MAX, 0);
    lua_getfield(L, 1, "cut");
    text.cuts = (unsigned)luaL_checkoption(L, -1, "none", cuts);
    lua_getfield(L, 1, "encoding");
    text.base64 = luaL_checkoption(L, -1, "utf-8", encodings) == 1;
    if (!text.bytes) {
        lua_getfield(L, 1, "file");
        const struct file_log *file = bind_test_log(L, -1);
        text.fd = file ? file->fd : bind_check_opened(L, -1)->fd;
        text.offset = (size_t)bind_option_integer(L, 1, "offset", 0, 0);
        text.size = (size_t)bind_option_integer(L, 1, "size", 0, 0);
    }
    return text;
}

// append_text(text, log) -> true | nil, failure
static int f_append_text(lua_State *L)
{
    struct error error = {0};
    struct file_log *log = bind_check_log(L, 2);
    const struct long_text text = check_text(L);
    return bind_outcome(L, long_text_write(&text, log, &error), &error);
}

// measure_text(text) -> bytes, whether they are UTF-8, bytes of half a character at the end | nil, failure
static int f_measure_text(lua_State *L)
{
    struct error error = {0};
    struct long_text_measure measure;
    const struct long_text text = check_text(L);
    if (long_text_measure(&text, &measure, &error) < 0)
        return bind_fail(L, &error);
    lua_pushinteger(L, measure.length);
    lua_pushboolean(L, measure.is_utf8);
    lua_pushinteger(L, (lua_Integer)measure.half);
    return 3;
}

static int f_append(lua_State *L)
{
    const char *path = check_path(L, 1);
    bool create = lua_isnoneornil(L, 2) || lua_toboolean(L, 2);
    struct file_log *log = bind_new_log(L);
    struct error error = {0};
    return file_log_open(log, path, create, &error) < 0 ? bind_fail(L, &error) : 1;
}

static int f_open(lua_State *L)
{
    struct file_log *log = bind_new_log(L);
    struct error error = {0};
    return file_log_open_to_read(log, check_path(L, 1), &error) < 0 ? bind_fail(L, &error) : 1;
}

static int f_adopt(lua_State *L)
{
    int fd = (int)luaL_checkinteger(L, 1);
    bind_new_log(L)->fd = fd;
    return 1;
}

static int f_memory(lua_State *L)
{
    struct file_log *log = bind_new_log(L);
    struct error error = {0};
    return file_log_open_memory(log, &error) < 0 ? bind_fail(L, &error) : 1;
}

// write(fd, parts, timeout, whole?) -> whether all was written, count of bytes that were, and of all
static int f_write(lua_State *L)
{
    int fd = (int)luaL_checkinteger(L, 1);
    int64_t timeout = bind_check_seconds(L, 3);
    int64_t whole = lua_isnoneornil(L, 4) ? INT64_MAX : bind_check_seconds(L, 4);
    const struct parts parts = bind_push_parts(L, 2);
    size_t size = parts_size(&parts), written = stream_write(fd, &parts, timeout, whole);
    lua_pushboolean(L, written == size);
    lua_pushinteger(L, (lua_Integer)written);
    lua_pushinteger(L, (lua_Integer)size);
    return 3;
}

// Calls a function of core with the path at 1 -> true | nil, failure
static int call_with_path(lua_State *L, int (*function)(const char *path, struct error *error))
{
    struct error error = {0};
    return bind_outcome(L, function(check_path(L, 1), &error), &error);
}

static int f_sync(lua_State *L)
{
    return call_with_path(L, file_replace_sync);
}

static int f_make_directory(lua_State *L)
{
    return call_with_path(L, file_make_directory);
}

static int f_make_private_directory(lua_State *L)
{
    return call_with_path(L, file_make_private_directory);
}

// remove_directory(path, seconds?) -> true | nil, failure
static int f_remove_directory(lua_State *L)
{
    struct error error = {0};
    const char *path = check_path(L, 1);
    int64_t milliseconds = lua_isnoneornil(L, 2) ? INT64_MAX : bind_check_seconds(L, 2);
    return bind_outcome(L, file_remove_directory(path, milliseconds, &error), &error);
}

static int f_own(lua_State *L)
{
    return call_with_path(L, own_files_add);
}

static int f_make_temporary_directory(lua_State *L)
{
    struct error error = {0};
    const char *base = check_path(L, 1);
    struct buffer *owner = bind_new_buffer(L);
    owner->data = file_make_temporary_directory(base, &error);
    return bind_push_owned(L, owner, &error);
}

static int f_is_locked(lua_State *L)
{
    lua_pushboolean(L, file_log_is_locked(check_path(L, 1)));
    return 1;
}

// terminal_columns(fd) -> columns | nil
static int f_terminal_columns(lua_State *L)
{
    int columns = stream_columns((int)luaL_checkinteger(L, 1));
    if (columns)
        lua_pushinteger(L, columns);
    else
        luaL_pushfail(L);
    return 1;
}

static const luaL_Reg functions[] = {
    {"read", f_read},
    {"replace", f_replace},
    {"keep_directory", f_keep_directory},
    {"sync", f_sync},
    {"keep_room", f_keep_room},
    {"append", f_append},
    {"open", f_open},
    {"adopt", f_adopt},
    {"memory", f_memory},
    {"write", f_write},
    {"make_directory", f_make_directory},
    {"make_private_directory", f_make_private_directory},
    {"make_temporary_directory", f_make_temporary_directory},
    {"is_locked", f_is_locked},
    {"remove_directory", f_remove_directory},
    {"own", f_own},
    {"append_text", f_append_text},
    {"measure_text", f_measure_text},
    {"terminal_columns", f_terminal_columns},
    {NULL, NULL},
};

int luaopen_native_file(lua_State *L)
{
    bind_new_log_type(L);
    luaL_newlib(L, functions);
    return 1;
}
