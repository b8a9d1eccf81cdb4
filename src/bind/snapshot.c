// SPDX-License-Identifier: Apache-2.0
// native.snapshot: what has changed in a directory since root:snapshot(options).
#include "core/workspace/snapshot.h"

#include "bind/bind.h"
#include "bind/bind_handles.h"
#include "core/workspace/workspace.h"

static const char type_name[] = "native.snapshot";

static int snapshot_close(lua_State *L)
{
    struct snapshot **handle = luaL_checkudata(L, 1, type_name);
    snapshot_free(*handle);
    *handle = NULL;
    return 0;
}

static struct snapshot *check_snapshot(lua_State *L)
{
    struct snapshot **handle = luaL_checkudata(L, 1, type_name);
    luaL_argcheck(L, *handle, 1, "the snapshot is closed");
    lua_getiuservalue(L, 1, 1);
    bind_check_root(L, -1);
    lua_pop(L, 1);
    return *handle;
}

static void set_side(lua_State *L, const char *name, const struct snapshot_side *side)
{
    if (!side->mode)
        return;
    lua_createtable(L, 0, 3);
    bind_set_string(L, "type", workspace_type_name(side->mode));
    bind_set_integer(L, "mode", side->mode & 07777);
    bind_set_integer(L, "size_bytes", (lua_Integer)side->size);
    lua_setfield(L, -2, name);
}

// snapshot:changes() -> list | nil, failure
static int snapshot_changes(lua_State *L)
{
    static const char *const actions[] = {
        [SNAPSHOT_CREATED] = "created",           [SNAPSHOT_MODIFIED] = "modified",
        [SNAPSHOT_DELETED] = "deleted",           [SNAPSHOT_MODE_CHANGED] = "mode_changed",
        [SNAPSHOT_TYPE_CHANGED] = "type_changed", [SNAPSHOT_UNREADABLE] = "unreadable",
    };
    struct error error = {0};
    const struct snapshot_change *changes;
    long count = snapshot_compare(check_snapshot(L), &changes, &error);
    if (count < 0)
        return bind_fail(L, &error);
    lua_createtable(L, (int)count, 0);
    for (long i = 0; i < count; i++) {
        lua_createtable(L, 0, 5);
        bind_set_string(L, "path", changes[i].path);
        bind_set_string(L, "action", actions[changes[i].action]);
        if (changes[i].original)
            bind_set_integer(L, "original", (lua_Integer)changes[i].original);
        if (changes[i].blocked)
            bind_set_boolean(L, "blocked", true);
        set_side(L, "before", &changes[i].before);
        set_side(L, "after", &changes[i].after);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

// snapshot:content(original) -> bytes | nil, failure
static int f_content(lua_State *L)
{
    struct error error = {0};
    const struct snapshot *snapshot = check_snapshot(L);
    size_t original = (size_t)luaL_checkinteger(L, 2);
    struct buffer *content = bind_new_buffer(L);
    if (snapshot_content(snapshot, original, content, &error) < 0)
        return bind_fail(L, &error);
    bind_push_bytes(L, content);
    return 1;
}

static const luaL_Reg methods[] = {
    {"changes", snapshot_changes}, {"content", f_content}, {"close", snapshot_close}, {NULL, NULL}};

// root:snapshot(options) -> snapshot | nil, failure
int bind_root_snapshot(lua_State *L)
{
    static const char *const names[] = {"directory", "most_bytes", "left_out", NULL};
    struct error error = {0};
    const struct workspace *workspace = bind_check_root(L, 1);
    bind_check_options(L, 2, names);
    const struct snapshot_options options = {
        .directory = bind_option_string(L, 2, "directory", NULL),
        .most_bytes = (uint64_t)bind_option_integer(L, 2, "most_bytes", LUA_MAXINTEGER, 0),
        .left_out = bind_option_string(L, 2, "left_out", NULL),
    };
    luaL_argcheck(L, options.directory, 2, "option 'directory' is missing");
    bind_new_type(L, type_name, methods, snapshot_close);
    struct snapshot **handle = bind_new_handle(L, type_name, sizeof *handle, 1);
    lua_pushvalue(L, 1); // the directory lives as long as its snapshot
    lua_setiuservalue(L, -2, 1);
    *handle = snapshot_take(workspace, &options, &error);
    return *handle ? 1 : bind_fail(L, &error);
}
