// SPDX-License-Identifier: Apache-2.0
// native.folder: tree. The list of its files is beside it (files.c).
#include "bind/bind.h"
#include "core/text.h"
#include "core/workspace_tree.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 }; // each costs two levels of JSON, and readers of JSON have their own bound

static int tree_free(lua_State *L)
{
    struct tree **tree = lua_touserdata(L, 1);
    tree_close(*tree);
    *tree = NULL;
    return 0;
}

static const luaL_Reg tree_metamethods[] = {{"__gc", tree_free}, {"__close", tree_free}, {NULL, NULL}};

struct tree **bind_new_tree(lua_State *L)
{
    struct tree **tree = lua_newuserdatauv(L, sizeof *tree, 0);
    *tree = NULL;
    if (luaL_newmetatable(L, "native.tree"))
        luaL_setfuncs(L, tree_metamethods, 0);
    lua_setmetatable(L, -2);
    lua_toclose(L, -1);
    return tree;
}

// A tree table in the making. On the Lua stack, from first on, stand the children tables of the folders that the walk
// is in, the deepest last.
struct builder {
    lua_State *L;
    struct tree *tree;
    struct buffer *scratch;
    int array_metatable; // stack index
    int first;
    size_t depth;                  // children tables on the stack
    lua_Integer counts[DEPTH_MAX]; // of their entries
    size_t bytes;                  // as JSON
};

// Pushes a name or target repaired, and counts its bytes as JSON.
static void push_text(struct builder *builder, const char *bytes)
{
    size_t size = strlen(bytes);
    if (!text_is_utf8(bytes, size)) {
        builder->scratch->size = 0;
        if (text_repair(bytes, size, builder->scratch) < 0)
            luaL_error(builder->L, "not enough memory");
        bytes = builder->scratch->data;
        size = builder->scratch->size;
    }
    builder->bytes += text_json_size(bytes, size);
    lua_pushlstring(builder->L, bytes, size);
}

static void push_mode(lua_State *L, mode_t mode)
{
    char octal[4];
    for (int i = 3; i >= 0; i--, mode >>= 3)
        octal[i] = (char)('0' + (mode & 7));
    lua_pushlstring(L, octal, sizeof octal);
}

static size_t digits(uint64_t value)
{
    size_t count = 1;
    while (value >= 10) {
        value /= 10;
        count++;
    }
    return count;
}

// Pushes the link's target, read into a buffer of Lua's.
static void set_target(struct builder *builder)
{
    lua_State *L = builder->L;
    struct buffer *target = bind_new_buffer(L);
    target->data = tree_target(builder->tree);
    if (target->data) {
        push_text(builder, target->data);
        lua_setfield(L, -3, "target");
        builder->bytes += sizeof ",\"target\":\"\"" - 1;
    }
    buffer_free(target);
    lua_pop(L, 1);
}

// Pushes the entry's table; where the walk entered it, its children table too, under it in the table and above it on
// the stack.
static void push_entry(struct builder *builder, const struct tree_entry *entry)
{
    lua_State *L = builder->L;
    const char *type = workspace_type_name(entry->mode);
    lua_createtable(L, 0, S_ISLNK(entry->mode) || entry->entered ? 5 : 4);
    push_text(builder, entry->name);
    lua_setfield(L, -2, "name");
    bind_set_string(L, "type", type);
    bind_set_integer(L, "size_bytes", (lua_Integer)entry->size);
    push_mode(L, entry->mode);
    lua_setfield(L, -2, "mode");
    builder->bytes += sizeof ",{\"name\":\"\",\"type\":\"\",\"size_bytes\":,\"mode\":\"0644\"}" - 1 + strlen(type) +
                      digits(entry->size);
    if (S_ISLNK(entry->mode))
        set_target(builder);
    if (!entry->entered)
        return;
    lua_newtable(L);
    lua_pushvalue(L, builder->array_metatable);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "children");
    builder->bytes += sizeof ",\"children\":[]" - 1;
}

// Adds an entry below the root to the children table of its folder.
static void add_entry(struct builder *builder, const struct tree_entry *entry)
{
    lua_State *L = builder->L;
    builder->depth = entry->depth;
    int folder = builder->first + (int)entry->depth - 1;
    lua_settop(L, folder);
    push_entry(builder, entry);
    if (entry->entered) {
        builder->counts[entry->depth] = 0;
        lua_rotate(L, -2, 1); // the children table takes its place, the entry goes to its folder
    }
    lua_Integer *count = &builder->counts[entry->depth - 1];
    if (*count == 0)
        builder->bytes--; // no comma before the first
    lua_rawseti(L, folder, ++*count);
}

// Takes the entry out again that went over a limit.
static void drop_entry(struct builder *builder, const struct tree_entry *entry)
{
    lua_pushnil(builder->L);
    lua_rawseti(builder->L, builder->first + (int)entry->depth - 1, builder->counts[entry->depth - 1]);
}

struct limits {
    size_t max_depth, max_entries, max_bytes;
};

// Walks to the end or to a limit: 0 and *cut, the limit's name or NULL; or -1.
static int build(struct builder *builder, const struct limits *limits, const char **cut, struct error *error)
{
    struct tree_entry entry;
    int more;
    for (size_t count = 0; (more = tree_next(builder->tree, &entry, error)) > 0; count++) {
        if (entry.depth == DEPTH_MAX && S_ISDIR(entry.mode) && limits->max_depth > DEPTH_MAX)
            *cut = "max_depth";
        if (entry.depth == 0) {
            push_entry(builder, &entry);
            builder->bytes--; // no comma before the root
            builder->counts[0] = 0;
            continue;
        }
        if (count > limits->max_entries) {
            *cut = "max_entries";
            return 0;
        }
        add_entry(builder, &entry);
        if (builder->bytes > limits->max_bytes) {
            drop_entry(builder, &entry);
            *cut = "max_bytes";
            return 0;
        }
    }
    return more;
}

// folder:tree(path, options) -> entry, cut | nil, failure
int bind_folder_tree(lua_State *L)
{
    static const char *const names[] = {"max_depth", "max_entries", "max_bytes", "include_hidden", NULL};
    struct error error = {0};
    const struct workspace *workspace = bind_check_folder(L, 1);
    const char *path = bind_check_path(L, 2, &error);
    bind_check_options(L, 3, names);
    struct limits limits = {
        .max_depth = (size_t)bind_option_integer(L, 3, "max_depth", LUA_MAXINTEGER, 0),
        .max_entries = (size_t)bind_option_integer(L, 3, "max_entries", LUA_MAXINTEGER, 0),
        .max_bytes = (size_t)bind_option_integer(L, 3, "max_bytes", LUA_MAXINTEGER, 0),
    };
    struct tree_options options = {
        .max_depth = limits.max_depth < DEPTH_MAX ? limits.max_depth : DEPTH_MAX,
        .hidden = bind_option_boolean(L, 3, "include_hidden", true),
    };
    luaL_checkstack(L, DEPTH_MAX + 16, NULL);
    struct tree **tree = bind_new_tree(L);
    if (!path || !(*tree = tree_open(workspace, path, &options, &error)))
        return bind_fail(L, &error);

    const char *cut = NULL;
    struct builder builder = {.L = L, .tree = *tree, .scratch = bind_new_buffer(L)};
    bind_push_array_metatable(L);
    builder.array_metatable = lua_gettop(L);
    int root = builder.array_metatable + 1;
    builder.first = root + 1;
    if (build(&builder, &limits, &cut, &error) < 0)
        return bind_fail(L, &error);
    lua_settop(L, root);
    if (cut)
        lua_pushstring(L, cut);
    else
        lua_pushboolean(L, 0);
    return 2;
}

// folder:sweep(since, keep) -> count | nil, failure
int bind_folder_sweep(lua_State *L)
{
    struct error error = {0};
    struct tree_entry entry;
    const struct tree_options options = {.max_depth = SIZE_MAX, .hidden = true};
    const struct workspace *workspace = bind_check_folder(L, 1);
    int64_t since = (int64_t)luaL_checknumber(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    struct tree **tree = bind_new_tree(L);
    if (!(*tree = tree_open(workspace, ".", &options, &error)))
        return bind_fail(L, &error);
    lua_Integer count = 0;
    int more;
    while ((more = tree_next(*tree, &entry, &error)) > 0) {
        if (strncmp(entry.name, ".sba-", 5) != 0)
            continue;
        bool kept = lua_getfield(L, 3, tree_path(*tree)) != LUA_TNIL;
        lua_pop(L, 1);
        count += !kept && tree_remove_temporary(*tree, since);
    }
    if (more < 0)
        return bind_fail(L, &error);
    lua_pushinteger(L, count);
    return 1;
}
