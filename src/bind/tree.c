// SPDX-License-Identifier: Apache-2.0
// native.root: tree, names, files, share and sweep.
#include "bind/bind.h"
#include "core/clock.h"
#include "core/workspace_list.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static int tree_free(lua_State *L)
{
    struct workspace_tree **tree = lua_touserdata(L, 1);
    workspace_tree_close(*tree);
    *tree = NULL;
    return 0;
}

// Pushes a walk through a tree, NULL until it is opened. It is closed when the C function that pushed it returns.
static struct workspace_tree **new_tree(lua_State *L)
{
    bind_new_type(L, "native.tree", NULL, tree_free);
    struct workspace_tree **tree = bind_new_handle(L, "native.tree", sizeof *tree, 0);
    lua_toclose(L, -1);
    return tree;
}

static size_t option_size(lua_State *L, const char *name)
{
    return (size_t)bind_option_integer(L, 3, name, LUA_MAXINTEGER, 0);
}

static void push_start(lua_State *L, const struct workspace_tree_entry *start)
{
    char mode[5];
    workspace_mode_text(start->mode, mode);
    lua_createtable(L, 0, 6);
    bind_set_string(L, "name", start->name);
    bind_set_string(L, "type", workspace_type_name(start->mode));
    bind_set_integer(L, "size_bytes", (lua_Integer)start->size);
    bind_set_string(L, "mode", mode);
}

// root:tree(path, options) -> tree, text, cut | nil, failure
int bind_root_tree(lua_State *L)
{
    static const char *const names[] = {"max_depth", "max_entries", "max_bytes", "include_hidden", NULL};
    struct error error = {0};
    struct workspace_tree_entry start;
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    bind_check_options(L, 3, names);
    lua_settop(L, 3);
    struct workspace_list list = {
        .max_depth = option_size(L, "max_depth"),
        .max_entries = option_size(L, "max_entries"),
        .max_bytes = option_size(L, "max_bytes"),
    };
    struct workspace_tree_options options = {
        .max_depth = list.max_depth < WORKSPACE_LIST_DEPTH ? list.max_depth : WORKSPACE_LIST_DEPTH,
        .hidden = bind_option_boolean(L, 3, "include_hidden", true),
    };
    struct workspace_tree **tree = new_tree(L);
    list.text = bind_new_buffer(L);
    list.children = bind_new_buffer(L);
    if (!path || !(*tree = workspace_tree_open(workspace, path, &options, &error)) ||
        workspace_tree_next(*tree, &start, &error) < 0)
        return bind_fail(L, &error);
    push_start(L, &start);
    if (workspace_list(*tree, &start, &list, &error) < 0)
        return bind_fail(L, &error);
    if (start.entered) {
        lua_pushvalue(L, -2);
        lua_setfield(L, -2, "children");
    }
    lua_pushlstring(L, list.text->data, list.text->size);
    buffer_free(list.text);
    lua_pushstring(L, list.cut);
    return 3;
}

// root:names(path, most) -> {{name=, type=}, ...}, more | nil, failure
int bind_root_names(lua_State *L)
{
    struct error error = {0};
    struct workspace_tree_entry entry;
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    lua_Integer most = luaL_checkinteger(L, 3);
    luaL_argcheck(L, most > 0, 3, "must be more than 0");
    const struct workspace_tree_options options = {
        .max_depth = 1, .hidden = true, .types_only = true, .max_names = (size_t)most};
    struct workspace_tree **tree = new_tree(L);
    if (!path || !(*tree = workspace_tree_open(workspace, path, &options, &error)) ||
        workspace_tree_next(*tree, &entry, &error) < 0)
        return bind_fail(L, &error);
    lua_newtable(L);
    int more;
    for (lua_Integer i = 1; (more = workspace_tree_next(*tree, &entry, &error)) > 0; i++) {
        lua_createtable(L, 0, 2);
        bind_set_string(L, "name", entry.name);
        bind_set_string(L, "type", workspace_type_name(entry.mode));
        lua_rawseti(L, -2, i);
    }
    if (more < 0)
        return bind_fail(L, &error);
    lua_pushboolean(L, workspace_tree_is_cut(*tree));
    return 2;
}

static void push_path(lua_State *L, const struct workspace_tree *tree, const char *field, bool value)
{
    lua_createtable(L, 0, 2);
    bind_set_string(L, "path", workspace_tree_path(tree));
    if (value)
        bind_set_boolean(L, field, true);
}

// root:files(limit, seconds?) -> {{path=, size_bytes=}...}, directories, more | nil, failure
int bind_root_files(lua_State *L)
{
    struct error error = {0};
    struct workspace_tree_entry entry;
    const struct workspace_tree_options options = {.max_depth = SIZE_MAX, .hidden = true};
    const struct workspace *workspace = bind_check_root(L, 1);
    lua_Integer limit = luaL_checkinteger(L, 2), count = 0, directories = 0;
    lua_Number seconds = luaL_optnumber(L, 3, HUGE_VAL);
    int64_t until = seconds < 9e12 ? clock_now() + (int64_t)(seconds * 1000) : INT64_MAX;
    struct workspace_tree **tree = new_tree(L);
    if (!(*tree = workspace_tree_open(workspace, ".", &options, &error)))
        return bind_fail(L, &error);
    lua_newtable(L);
    lua_newtable(L);
    int more;
    while ((more = workspace_tree_next(*tree, &entry, &error)) > 0) {
        if (until != INT64_MAX && clock_now() >= until)
            break;
        if (S_ISDIR(entry.mode)) {
            push_path(L, *tree, "closed", !entry.entered);
            lua_rawseti(L, -2, ++directories);
        } else if (S_ISREG(entry.mode)) {
            if (count == limit)
                break;
            push_path(L, *tree, NULL, false);
            bind_set_integer(L, "size_bytes", (lua_Integer)entry.size);
            lua_rawseti(L, -3, ++count);
        }
    }
    if (more < 0)
        return bind_fail(L, &error);
    lua_pushboolean(L, more);
    return 3;
}

// root:share(path, bits)
int bind_root_share(lua_State *L)
{
    struct stat status;
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = luaL_checkstring(L, 2);
    mode_t bits = (mode_t)luaL_checkinteger(L, 3) & 0777;
    int fd = workspace_resolve(workspace, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, &status) == 0 && (status.st_mode & bits) != bits)
        fchmod(fd, (status.st_mode & 07777) | bits);
    if (fd >= 0)
        close(fd);
    return 0;
}

// root:sweep(since, keep) -> count | nil, failure
int bind_root_sweep(lua_State *L)
{
    struct error error = {0};
    struct workspace_tree_entry entry;
    const struct workspace_tree_options options = {.max_depth = SIZE_MAX, .hidden = true};
    const struct workspace *workspace = bind_check_root(L, 1);
    int64_t since = (int64_t)luaL_checknumber(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    struct workspace_tree **tree = new_tree(L);
    if (!(*tree = workspace_tree_open(workspace, ".", &options, &error)))
        return bind_fail(L, &error);
    lua_Integer count = 0;
    int more;
    while ((more = workspace_tree_next(*tree, &entry, &error)) > 0) {
        if (strncmp(entry.name, ".sba-", 5) != 0)
            continue;
        bool kept = lua_getfield(L, 3, workspace_tree_path(*tree)) != LUA_TNIL;
        lua_pop(L, 1);
        count += !kept && workspace_tree_remove_temporary(*tree, since);
    }
    if (more < 0)
        return bind_fail(L, &error);
    lua_pushinteger(L, count);
    return 1;
}
