// SPDX-License-Identifier: Apache-2.0
// native.search: regular expressions over the files of a directory.
#include "core/search/search.h"

#include "bind/bind.h"
#include "core/text/glob.h"

#include <string.h>

static const char regex_type[] = "native.search.regex";
static const char search_type[] = "native search"; // never seen by Lua code

// What a call holds while Lua can raise.
struct search_call {
    struct glob *include;
    struct search_results results;
};

// compile(pattern, {ignore_case}) -> regex | nil, failure
static int f_compile(lua_State *L)
{
    static const char *const options[] = {"ignore_case", NULL};
    struct error error = {0};
    size_t size;
    const char *pattern = luaL_checklstring(L, 1, &size);
    bind_check_options(L, 2, options);
    bool ignore_case = bind_option_boolean(L, 2, "ignore_case", false);
    struct search_regex **regex = bind_new_handle(L, regex_type, sizeof *regex, 0);
    *regex = search_compile(pattern, size, ignore_case, &error);
    return *regex ? 1 : bind_fail(L, &error);
}

static int regex_free(lua_State *L)
{
    struct search_regex **regex = luaL_checkudata(L, 1, regex_type);
    search_regex_free(*regex);
    *regex = NULL;
    return 0;
}

static int search_free(lua_State *L)
{
    struct search_call *search = luaL_checkudata(L, 1, search_type);
    glob_free(search->include);
    search->include = NULL;
    search_results_free(&search->results);
    return 0;
}

static struct search_call *new_search(lua_State *L)
{
    struct search_call *search = bind_new_handle(L, search_type, sizeof *search, 0);
    lua_toclose(L, -1);
    return search;
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

static int read_include(struct search_call *search, const char *include, size_t size, struct error *error)
{
    if (strlen(include) != size)
        return error_set(error, "invalid_glob", 0, "the glob \"%s\" is malformed: it holds a NUL", include);
    search->include = glob_compile(include, error);
    return search->include ? 0 : -1;
}

// check_glob(glob) -> true | nil, failure
static int f_check_glob(lua_State *L)
{
    struct error error = {0};
    size_t size;
    const char *glob = luaL_checklstring(L, 1, &size);
    if (read_include(new_search(L), glob, size, &error) < 0)
        return bind_fail(L, &error);
    lua_pushboolean(L, 1);
    return 1;
}

// regex:files(where, path, {include, max_matches, max_bytes}) -> found | nil, failure
static int regex_files(lua_State *L)
{
    static const char *const options[] = {"include", "max_matches", "max_bytes", NULL};
    struct error error = {0};
    struct search_regex *regex = *(struct search_regex **)luaL_checkudata(L, 1, regex_type);
    const struct workspace *workspace = bind_check_root(L, 2);
    const char *path = bind_check_path(L, 3, &error);
    bind_check_options(L, 4, options);
    lua_settop(L, 4); // so that 4 is nil without options, and not what is pushed next
    size_t size = 0;
    const char *include = bind_option_string(L, 4, "include", &size);
    struct search_call *search = new_search(L);
    search->results.max_matches = (uint64_t)bind_option_integer(L, 4, "max_matches", LUA_MAXINTEGER, 0);
    search->results.max_bytes = (uint64_t)bind_option_integer(L, 4, "max_bytes", LUA_MAXINTEGER, 0);

    if (!path || (include && read_include(search, include, size, &error) < 0))
        return bind_fail(L, &error);
    if (search_files(regex, workspace, path, search->include, &search->results, &error) < 0) {
        bind_fail(L, &error);
        push_found(L, &search->results);
        lua_setfield(L, -2, "found");
        return 2;
    }
    push_found(L, &search->results);
    return 1;
}

static const luaL_Reg regex_methods[] = {{"files", regex_files}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"compile", f_compile}, {"check_glob", f_check_glob}, {NULL, NULL}};

int luaopen_native_search(lua_State *L)
{
    bind_new_type(L, search_type, NULL, search_free);
    bind_new_type(L, regex_type, regex_methods, regex_free);
    luaL_newlib(L, functions);
    return 1;
}
