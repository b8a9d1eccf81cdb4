// SPDX-License-Identifier: Apache-2.0
// native.search: regular expressions over the files of a directory.
#include "core/search/search.h"

#include "bind/bind.h"
#include "bind/bind_handles.h"
#include "core/text/glob.h"

static const char regex_type[] = "native.search.regex";
static const char results_type[] = "native results"; // what a call holds while Lua can raise; never seen by Lua code

struct bind_search {
    struct search_regex *regex;
    struct glob *include; // NULL: all files
};

// compile(pattern, {ignore_case, include}) -> regex | nil, failure
static int f_compile(lua_State *L)
{
    static const char *const options[] = {"ignore_case", "include", NULL};
    struct error error = {0};
    size_t size;
    const char *pattern = luaL_checklstring(L, 1, &size);
    bind_check_options(L, 2, options);
    lua_settop(L, 2); // so that 2 is nil without options, and not what is pushed next
    bool ignore_case = bind_option_boolean(L, 2, "ignore_case", false);
    const char *include = bind_option_string(L, 2, "include", NULL);
    struct bind_search *search = bind_new_handle(L, regex_type, sizeof *search, 0);
    search->regex = search_compile(pattern, size, ignore_case, &error);
    if (search->regex && include)
        search->include = glob_compile(include, GLOB_CHARACTERS, &error);
    return search->regex && (search->include || !include) ? 1 : bind_fail(L, &error);
}

static int regex_free(lua_State *L)
{
    struct bind_search *search = luaL_checkudata(L, 1, regex_type);
    search_regex_free(search->regex);
    glob_free(search->include);
    *search = (struct bind_search){0};
    return 0;
}

static const struct bind_search *check_regex(lua_State *L)
{
    const struct bind_search *search = luaL_checkudata(L, 1, regex_type);
    luaL_argcheck(L, search->regex, 1, "the regex is closed");
    return search;
}

static int results_free(lua_State *L)
{
    search_results_free(luaL_checkudata(L, 1, results_type));
    return 0;
}

static void push_found(lua_State *L, const struct search_results *results)
{
    lua_createtable(L, 0, 6);
    lua_pushlstring(L, results->json.data, results->count ? results->json.size - 1 : 0);
    lua_setfield(L, -2, "json");
    lua_pushlstring(L, results->shown.data, results->shown.size);
    lua_setfield(L, -2, "shown");
    bind_set_integer(L, "count", (lua_Integer)results->count);
    bind_set_integer(L, "files_searched", results->files_searched);
    bind_set_integer(L, "files_unreadable", results->files_unreadable);
    if (results->limit != SEARCH_NO_LIMIT)
        bind_set_string(L, "limit", results->limit == SEARCH_MATCHES ? "max_matches" : "max_bytes");
}

// regex:files(where, path, {max_matches, max_bytes}) -> found | nil, failure
static int regex_files(lua_State *L)
{
    static const char *const options[] = {"max_matches", "max_bytes", NULL};
    struct error error = {0};
    const struct bind_search *search = check_regex(L);
    const struct workspace *workspace = bind_check_root(L, 2);
    const char *path = bind_check_path(L, 3, &error);
    bind_check_options(L, 4, options);
    lua_settop(L, 4);
    uint64_t max_matches = (uint64_t)bind_option_integer(L, 4, "max_matches", LUA_MAXINTEGER, 0);
    uint64_t max_bytes = (uint64_t)bind_option_integer(L, 4, "max_bytes", LUA_MAXINTEGER, 0);
    struct search_results *results = bind_new_handle(L, results_type, sizeof *results, 0);
    lua_toclose(L, -1);
    *results = (struct search_results){.max_matches = max_matches, .max_bytes = max_bytes};

    if (!path)
        return bind_fail(L, &error);
    if (search_files(search->regex, workspace, path, search->include, results, &error) == 0) {
        push_found(L, results);
        return 1;
    }
    bind_fail(L, &error);
    push_found(L, results);
    lua_setfield(L, -2, "found");
    return 2;
}

static const luaL_Reg regex_methods[] = {{"files", regex_files}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"compile", f_compile}, {NULL, NULL}};

int luaopen_native_search(lua_State *L)
{
    bind_new_type(L, results_type, NULL, results_free);
    bind_new_type(L, regex_type, regex_methods, regex_free);
    luaL_newlib(L, functions);
    return 1;
}
