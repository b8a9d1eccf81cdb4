// SPDX-License-Identifier: Apache-2.0
// native.workspace: a confined directory. Reads, replaces and looks at its files.
#include "core/workspace/workspace.h"

#include "bind/bind.h"
#include "bind/bind_handles.h"
#include "core/base/cleanup.h"
#include "core/workspace/workspace_change.h"
#include "core/workspace/workspace_directory.h"
#include "core/workspace/workspace_read.h"
#include "core/workspace/workspace_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char root_type[] = "native.root";
static const char opened_type[] = "native.opened";

struct workspace *bind_check_root(lua_State *L, int index)
{
    struct workspace *workspace = luaL_checkudata(L, index, root_type);
    luaL_argcheck(L, workspace->fd >= 0, index, "the directory is closed");
    return workspace;
}

const struct bind_opened *bind_check_opened(lua_State *L, int index)
{
    const struct bind_opened *opened = luaL_checkudata(L, index, opened_type);
    luaL_argcheck(L, opened->fd >= 0, index, "it is closed");
    return opened;
}

// open(path) -> directory | nil, failure
static int f_open(lua_State *L)
{
    struct error error = {0};
    const char *path = bind_check_path(L, 1, &error);
    struct workspace *workspace = bind_new_handle(L, root_type, sizeof *workspace, 0);
    workspace->fd = -1;
    if (!path || workspace_open(workspace, path, &error) < 0)
        return bind_fail(L, &error);
    return 1;
}

static int root_close(lua_State *L)
{
    workspace_close(luaL_checkudata(L, 1, root_type));
    return 0;
}

// root:path() -> absolute path
static int root_path(lua_State *L)
{
    lua_pushstring(L, bind_check_root(L, 1)->path);
    return 1;
}

// root:relative(path) -> path relative to the directory | nil, failure. Lack of memory is raised: a step that has done
// its work names the file by a path that was good.
static int root_relative(lua_State *L)
{
    struct error error = {0};
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    struct buffer *owner = bind_new_buffer(L);
    if (path)
        owner->data = workspace_relative(workspace, path, &error);
    if (!owner->data && error.number == ENOMEM) {
        error_clear(&error);
        return luaL_error(L, "not enough memory");
    }
    if (!owner->data)
        return bind_fail(L, &error);
    size_t size = strlen(owner->data);
    lua_pushlstring(L, owner->data, size - (owner->data[size - 1] == '/'));
    return 1;
}

static struct workspace_read_options check_read_options(lua_State *L, int index)
{
    static const char *const names[] = {"offset_bytes", "max_bytes", "max_content", "start_line", "end_line",
                                        "nofollow",     "digest",    "max_digest",  NULL};
    bind_check_options(L, index, names);
    lua_Integer max_digest = bind_option_integer(L, index, "max_digest", LUA_MAXINTEGER, 0);
    return (struct workspace_read_options){
        .offset = (uint64_t)bind_option_integer(L, index, "offset_bytes", 0, 0),
        .max_bytes = (uint64_t)bind_option_integer(L, index, "max_bytes", LUA_MAXINTEGER, 0),
        .max_content = (size_t)bind_option_integer(L, index, "max_content", LUA_MAXINTEGER, 0),
        .first_line = (uint64_t)bind_option_integer(L, index, "start_line", 1, 1),
        .last_line = (uint64_t)bind_option_integer(L, index, "end_line", 0, 1),
        .flags = bind_option_boolean(L, index, "nofollow", false) ? O_NOFOLLOW : 0,
        .digest = bind_option_boolean(L, index, "digest", false) ? (uint64_t)max_digest : 0,
    };
}

static int root_read(lua_State *L)
{
    struct error error = {0};
    struct workspace_read_result result;
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    struct workspace_read_options options = check_read_options(L, 3);
    struct buffer *content = bind_push_shared_buffer(L);
    if (!path || workspace_read(workspace, path, &options, content, &result, &error) < 0)
        return bind_fail(L, &error);

    // First the content: a finalizer that the collector runs may use the buffer too.
    lua_pushlstring(L, content->data, content->size);
    bind_empty_shared_buffer(content);
    lua_createtable(L, 0, 8);
    lua_insert(L, -2);
    lua_setfield(L, -2, "content");
    bind_set_boolean(L, "truncated", result.truncated);
    bind_set_integer(L, "size_bytes", (lua_Integer)result.size);
    bind_set_integer(L, "mode", result.mode);
    bind_set_integer(L, "from", (lua_Integer)result.from);
    bind_set_integer(L, "length", (lua_Integer)result.length);
    if (result.has_digest) {
        bind_set_string(L, "sha256", result.sha256);
        bind_set_integer(L, "lines", (lua_Integer)result.lines);
    }
    return 1;
}

static struct workspace_write_options check_write_options(lua_State *L, int index)
{
    static const char *const names[] = {"mode", "overwrite", "append", NULL};
    bind_check_options(L, index, names);
    lua_Integer mode = bind_option_integer(L, index, "mode", WORKSPACE_MODE_AS_BEFORE, 0);
    luaL_argcheck(L, mode <= 0777, index, "option 'mode' must hold permission bits only, at most 0777");
    return (struct workspace_write_options){
        .mode = (int)mode,
        .overwrite = bind_option_boolean(L, index, "overwrite", true),
        .append = bind_option_boolean(L, index, "append", false),
    };
}

// root:write(path, content, options) -> {size_bytes=, sha256?=, created=} | nil, failure
static int root_write(lua_State *L)
{
    size_t size;
    struct error error = {0};
    struct workspace_write_result result;
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    const char *content = luaL_checklstring(L, 3, &size);
    struct workspace_write_options options = check_write_options(L, 4);
    if (!path || workspace_write(workspace, path, content, size, &options, &result, &error) < 0)
        return bind_fail(L, &error);

    lua_createtable(L, 0, 3);
    bind_set_integer(L, "size_bytes", (lua_Integer)result.size);
    if (*result.sha256)
        bind_set_string(L, "sha256", result.sha256);
    bind_set_boolean(L, "created", result.created);
    return 1;
}

// root:stat(path) -> {type=, size_bytes=, mode=, inode=, changed_ns=, target=} | nil, failure
static int root_stat(lua_State *L)
{
    struct error error = {0};
    struct stat status;
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    struct buffer *target = bind_new_buffer(L);
    if (!path || workspace_stat(workspace, path, &status, &target->data, &error) < 0)
        return bind_fail(L, &error);

    lua_createtable(L, 0, 6);
    bind_set_string(L, "type", workspace_type_name(status.st_mode));
    bind_set_integer(L, "size_bytes", status.st_size);
    bind_set_integer(L, "mode", status.st_mode & 07777);
    bind_set_integer(L, "inode", (lua_Integer)status.st_ino);
    bind_set_integer(L, "changed_ns", status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec);
    if (target->data)
        bind_set_string(L, "target", target->data);
    return 1;
}

static struct bind_opened *new_opened(lua_State *L)
{
    struct bind_opened *opened = bind_new_handle(L, opened_type, sizeof *opened, 0);
    opened->fd = -1;
    return opened;
}

// root:directory(path) -> opened | nil, failure
static int root_directory(lua_State *L)
{
    struct error error = {0};
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    struct bind_opened *opened = new_opened(L);
    opened->fd = path ? workspace_open_directory(workspace, path, &error) : -1;
    return opened->fd < 0 ? bind_fail(L, &error) : 1;
}

// root:open(path, sha256?) -> opened | nil, failure
static int root_open(lua_State *L)
{
    size_t size;
    struct error error = {0};
    struct stat status = {0};
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error), *sha256 = luaL_optlstring(L, 3, "", &size);
    luaL_argcheck(L, size == 0 || size == TEXT_SHA256_HEX - 1, 3, "must be a SHA-256 in hex");
    struct bind_opened *opened = new_opened(L);
    memcpy(opened->sha256, sha256, size);
    opened->fd = path ? workspace_open_file(workspace, path, 0, &status, &error) : -1;
    opened->size = (uint64_t)status.st_size;
    return opened->fd < 0 ? bind_fail(L, &error) : 1;
}

// opened:size() -> bytes when it was opened
static int opened_size(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)bind_check_opened(L, 1)->size);
    return 1;
}

// opened:read(most?) -> the first bytes, as they are now
static int opened_read(lua_State *L)
{
    luaL_Buffer bytes;
    int fd = bind_check_opened(L, 1)->fd;
    lua_Integer most = luaL_optinteger(L, 2, 4096);
    luaL_argcheck(L, most > 0 && most <= 1 << 20, 2, "must be 1 byte to 1 MiB");
    ssize_t size = pread(fd, luaL_buffinitsize(L, &bytes, (size_t)most), (size_t)most, 0);
    luaL_pushresultsize(&bytes, size < 0 ? 0 : (size_t)size);
    return 1;
}

static int opened_close(lua_State *L)
{
    struct bind_opened *opened = luaL_checkudata(L, 1, opened_type);
    cleanup_close(&opened->fd);
    return 0;
}

static mode_t check_mode(lua_State *L, int index, mode_t most)
{
    lua_Integer mode = luaL_checkinteger(L, index);
    luaL_argcheck(L, mode >= 0 && mode <= most, index, "must hold permission bits only");
    return (mode_t)mode;
}

// root:stage(path, content, mode?) -> where it waits | nil, failure
static int root_stage(lua_State *L)
{
    size_t size;
    struct error error = {0};
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    const char *content = bind_check_content(L, 3, &size);
    int mode = lua_isnoneornil(L, 4) ? WORKSPACE_MODE_AS_BEFORE : (int)check_mode(L, 4, 0777);
    struct buffer *owner = bind_new_buffer(L);
    owner->data = path ? workspace_stage(workspace, path, content, size, mode, &error) : NULL;
    return bind_push_owned(L, owner, &error);
}

// root:stage_link(path, target) -> where it waits | nil, failure
static int root_stage_link(lua_State *L)
{
    struct error error = {0};
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    const char *target = path ? bind_check_path(L, 3, &error) : NULL;
    struct buffer *owner = bind_new_buffer(L);
    owner->data = target ? workspace_stage_link(workspace, path, target, &error) : NULL;
    return bind_push_owned(L, owner, &error);
}

// root:move(from, to, aside?) -> true | nil, failure
static int root_move(lua_State *L)
{
    struct error error = {0};
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *from = bind_check_path(L, 2, &error), *to = from ? bind_check_path(L, 3, &error) : NULL;
    return bind_outcome(L, to ? workspace_move(workspace, from, to, luaL_optstring(L, 4, NULL), &error) : -1, &error);
}

// root:remove(path, kind) -> true | nil, failure
static int root_remove(lua_State *L)
{
    static const char *const kinds[] = {"file", "directory", NULL};
    struct error error = {0};
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    bool directory = luaL_checkoption(L, 3, NULL, kinds);
    return bind_outcome(L, path ? workspace_remove(workspace, path, directory, &error) : -1, &error);
}

// root:make_directory(path) -> true | nil, failure
static int root_make_directory(lua_State *L)
{
    struct error error = {0};
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    return bind_outcome(L, path ? workspace_make_directory(workspace, path, &error) : -1, &error);
}

// root:prune(path, kept)
static int root_prune(lua_State *L)
{
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = luaL_checkstring(L, 2);
    workspace_remove_directories(workspace, path, bind_check_size(L, 3));
    return 0;
}

// root:chmod(path, mode) -> true | nil, failure
static int root_chmod(lua_State *L)
{
    struct error error = {0};
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    mode_t mode = check_mode(L, 3, 07777);
    return bind_outcome(L, path ? workspace_chmod(workspace, path, mode, &error) : -1, &error);
}

static int f_temporary_name(lua_State *L)
{
    char name[WORKSPACE_TEMPORARY_SIZE];
    workspace_temporary_name(name);
    lua_pushstring(L, name);
    return 1;
}

static const luaL_Reg root_methods[] = {
    {"path", root_path},
    {"relative", root_relative},
    {"read", root_read},
    {"write", root_write},
    {"stat", root_stat},
    {"walk", bind_root_walk},
    {"snapshot", bind_root_snapshot},
    {"directory", root_directory},
    {"open", root_open},
    {"stage", root_stage},
    {"stage_link", root_stage_link},
    {"move", root_move},
    {"remove", root_remove},
    {"make_directory", root_make_directory},
    {"prune", root_prune},
    {"chmod", root_chmod},
    {NULL, NULL},
};
static const luaL_Reg opened_methods[] = {
    {"size", opened_size}, {"read", opened_read}, {"close", opened_close}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"open", f_open}, {"temporary_name", f_temporary_name}, {NULL, NULL}};

int luaopen_native_workspace(lua_State *L)
{
    bind_new_type(L, root_type, root_methods, root_close);
    bind_new_type(L, opened_type, opened_methods, opened_close);
    luaL_newlib(L, functions);
    return 1;
}
