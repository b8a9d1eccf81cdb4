// SPDX-License-Identifier: Apache-2.0
// native.root: tree, names, files, share and sweep.
#include "bind/bind.h"
#include "core/base/clock.h"
#include "core/files/workspace_tree.h"
#include "core/text/secret.h"
#include "core/text/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
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

enum { LEVELS = 64 }; // that are listed; a level takes two of JSON, and JSON readers have a limit

// A list as its entries are added to it.
struct listing {
    struct workspace_tree *tree;
    struct buffer *clean, *target;  // room for a name without secrets, and for where a link leads
    int top;                        // of the stack: the list; above it the children of each open directory
    lua_Integer counts[LEVELS + 1]; // of these children
    lua_Integer max_depth, left;    // entries that may follow
    size_t bytes, max_bytes;        // of the list as JSON, so far and at most
};

// Sets a field to a name, as UTF-8 without secrets, and adds its size as JSON.
static void set_name(lua_State *L, struct listing *listing, const char *field, const char *bytes)
{
    struct buffer *clean = listing->clean;
    clean->size = 0;
    if (buffer_append(clean, bytes, strlen(bytes)) < 0 || secret_redact(clean, 0) < 0)
        luaL_error(L, "not enough memory");
    lua_pushlstring(L, clean->data, clean->size);
    lua_setfield(L, -2, field);
    listing->bytes += text_json_size(clean->data, clean->size);
}

// Pushes an entry as a table, and adds its size as JSON, with a comma.
static void push_entry(lua_State *L, struct listing *listing, const struct workspace_tree_entry *entry)
{
    char mode[8];
    const char *type = workspace_type_name(entry->mode);
    snprintf(mode, sizeof mode, "%04o", (unsigned)(entry->mode & 07777));
    lua_createtable(L, 0, 5);
    set_name(L, listing, "name", entry->name);
    bind_set_string(L, "type", type);
    bind_set_integer(L, "size_bytes", (lua_Integer)entry->size);
    bind_set_string(L, "mode", mode);
    listing->bytes += strlen("{'name':'','type':'','size_bytes':,'mode':''},") + strlen(type) + strlen(mode) +
                      (size_t)snprintf(NULL, 0, "%" PRIu64, entry->size);
    if (entry->entered)
        listing->bytes += strlen(",'children':[]");
    if (!S_ISLNK(entry->mode) || !(listing->target->data = workspace_tree_target(listing->tree)))
        return;
    set_name(L, listing, "target", listing->target->data);
    listing->bytes += strlen(",'target':''");
    buffer_free(listing->target);
}

// Adds the entry on top of the stack to its parent's children. Of a directory that was entered the children are pushed.
static void add_entry(lua_State *L, struct listing *listing, const struct workspace_tree_entry *entry)
{
    listing->counts[entry->depth] = 0;
    if (entry->depth) {
        lua_pushvalue(L, -1);
        lua_rawseti(L, listing->top + (int)entry->depth, ++listing->counts[entry->depth - 1]);
    }
    if (!entry->entered)
        return;
    lua_newtable(L);
    bind_push_array_metatable(L);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "children");
    if (entry->depth)
        lua_remove(L, -2);
}

// Adds what is below the start: 0 and the limit that ended it, or -1.
static int add_entries(lua_State *L, struct listing *listing, const char **cut, struct error *error)
{
    struct workspace_tree_entry entry;
    int more;
    while ((more = workspace_tree_next(listing->tree, &entry, error)) > 0) {
        lua_settop(L, listing->top + (int)entry.depth);
        if (entry.depth == LEVELS && S_ISDIR(entry.mode) && listing->max_depth > LEVELS)
            *cut = "max_depth";
        if (listing->left-- == 0) {
            *cut = "max_entries";
            return 0;
        }
        push_entry(L, listing, &entry);
        listing->bytes -= listing->counts[entry.depth - 1] == 0; // no comma
        if (listing->bytes > listing->max_bytes) {
            *cut = "max_bytes";
            return 0;
        }
        add_entry(L, listing, &entry);
    }
    return more;
}

static struct listing check_list_options(lua_State *L)
{
    static const char *const names[] = {"max_depth", "max_entries", "max_bytes", "include_hidden", NULL};
    bind_check_options(L, 3, names);
    lua_settop(L, 3);
    return (struct listing){
        .max_depth = bind_option_integer(L, 3, "max_depth", LUA_MAXINTEGER, 0),
        .left = bind_option_integer(L, 3, "max_entries", LUA_MAXINTEGER, 0),
        .max_bytes = (size_t)bind_option_integer(L, 3, "max_bytes", LUA_MAXINTEGER, 0),
    };
}

// root:tree(path, options) -> tree, cut | nil, failure
int bind_root_tree(lua_State *L)
{
    const char *cut = NULL;
    struct error error = {0};
    struct workspace_tree_entry start;
    const struct workspace *workspace = bind_check_root(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    struct listing listing = check_list_options(L);
    const struct workspace_tree_options options = {
        .max_depth = listing.max_depth < LEVELS ? (size_t)listing.max_depth : LEVELS,
        .hidden = bind_option_boolean(L, 3, "include_hidden", true),
    };
    struct workspace_tree **tree = new_tree(L);
    listing.clean = bind_new_buffer(L);
    listing.target = bind_new_buffer(L);
    luaL_checkstack(L, LEVELS + 10, NULL);
    if (!path || !(*tree = workspace_tree_open(workspace, path, &options, &error)) ||
        workspace_tree_next(*tree, &start, &error) < 0)
        return bind_fail(L, &error);
    listing.tree = *tree;
    push_entry(L, &listing, &start);
    listing.bytes--; // no comma
    listing.top = lua_gettop(L);
    add_entry(L, &listing, &start);
    if (add_entries(L, &listing, &cut, &error) < 0)
        return bind_fail(L, &error);
    lua_settop(L, listing.top);
    lua_pushstring(L, cut);
    return 2;
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
