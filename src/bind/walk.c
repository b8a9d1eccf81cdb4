// SPDX-License-Identifier: Apache-2.0
// native.walk: a walk through a directory, begun by root:walk(path, options).
#include "bind/bind.h"
#include "bind/bind_handles.h"
#include "core/workspace/workspace_tree.h"

static const char walk_type[] = "native.walk";

static struct workspace_tree *check_walk(lua_State *L)
{
    struct workspace_tree *const *tree = luaL_checkudata(L, 1, walk_type);
    luaL_argcheck(L, *tree, 1, "the walk is closed");
    return *tree;
}

static int walk_close(lua_State *L)
{
    struct workspace_tree **tree = luaL_checkudata(L, 1, walk_type);
    workspace_tree_close(*tree);
    *tree = NULL;
    return 0;
}

// walk:next(into) -> entry, depth, entered | nil | nil, failure
static int walk_next(lua_State *L)
{
    struct error error = {0};
    struct workspace_tree_entry entry;
    struct workspace_tree *tree = check_walk(L);
    int more = workspace_tree_next(tree, &entry, &error);
    if (more < 0)
        return bind_fail(L, &error);
    if (more == 0)
        return 0;
    lua_settop(L, 2);
    if (lua_isnil(L, 2))
        lua_createtable(L, 0, 6);
    bind_set_string(L, "name", entry.name);
    bind_set_string(L, "type", workspace_type_name(entry.mode));
    bind_set_integer(L, "size_bytes", (lua_Integer)entry.size);
    bind_set_integer(L, "mode", entry.mode & 07777);
    bind_set_string(L, "target", NULL);
    if (S_ISLNK(entry.mode)) {
        struct buffer *target = bind_new_buffer(L);
        lua_insert(L, -2);
        target->data = workspace_tree_target(tree);
        bind_set_string(L, "target", target->data);
        buffer_free(target);
    }
    lua_pushinteger(L, (lua_Integer)entry.depth);
    lua_pushboolean(L, entry.entered);
    return 3;
}

// walk:path() -> path of the entry
static int walk_path(lua_State *L)
{
    lua_pushstring(L, workspace_tree_path(check_walk(L)));
    return 1;
}

// walk:is_cut() -> boolean
static int walk_is_cut(lua_State *L)
{
    lua_pushboolean(L, workspace_tree_is_cut(check_walk(L)));
    return 1;
}

// walk:remove_temporary(first) -> whether it was one
static int walk_remove_temporary(lua_State *L)
{
    struct workspace_tree *tree = check_walk(L);
    lua_pushboolean(L, workspace_tree_remove_temporary(tree, luaL_checkstring(L, 2)));
    return 1;
}

static const luaL_Reg methods[] = {
    {"next", walk_next},   {"path", walk_path}, {"is_cut", walk_is_cut}, {"remove_temporary", walk_remove_temporary},
    {"close", walk_close}, {NULL, NULL},
};

// root:walk(path, options) -> walk, to be declared <close> | nil, failure
int bind_root_walk(lua_State *L)
{
    static const char *const names[] = {"max_depth", "max_names", "include_hidden", NULL};
    struct error error = {0};
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    bind_check_options(L, 3, names);
    const struct workspace_tree_options options = {
        .max_depth = (size_t)bind_option_integer(L, 3, "max_depth", LUA_MAXINTEGER, 0),
        .max_names = (size_t)bind_option_integer(L, 3, "max_names", 0, 1),
        .hidden = bind_option_boolean(L, 3, "include_hidden", true),
    };
    bind_new_type(L, walk_type, methods, walk_close);
    struct workspace_tree **tree = bind_new_handle(L, walk_type, sizeof *tree, 1);
    lua_pushvalue(L, 1); // the directory lives as long as its walk
    lua_setiuservalue(L, -2, 1);
    if (!path || !(*tree = workspace_tree_open(workspace, path, &options, &error)))
        return bind_fail(L, &error);
    return 1;
}
