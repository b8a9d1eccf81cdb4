// SPDX-License-Identifier: Apache-2.0
// native.process: runs commands, ends what they leave behind.
#include "core/process.h"
#include "core/process_children.h"

#include "bind/bind.h"
#include "core/process_spawn.h"
#include "core/signal_name.h"

#include <string.h>

static int free_outcome(lua_State *L)
{
    process_outcome_free(lua_touserdata(L, 1));
    return 0;
}

// Pushes an empty outcome that Lua owns.
static struct process_outcome *new_outcome(lua_State *L)
{
    struct process_outcome *outcome = lua_newuserdatauv(L, sizeof *outcome, 0);
    *outcome = (struct process_outcome){0};
    bind_new_type(L, "native.process.outcome", NULL, free_outcome);
    luaL_setmetatable(L, "native.process.outcome");
    lua_toclose(L, -1);
    return outcome;
}

static const char *check_string(lua_State *L, int list, lua_Integer i, const char *name, struct error *error)
{
    size_t size;
    lua_rawgeti(L, list, i);
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_argerror(L, 1, lua_pushfstring(L, "option '%s' must be a list of strings", name));
    const char *text = lua_tolstring(L, -1, &size);
    lua_pop(L, 1); // the list, which the caller keeps, holds it
    if (strlen(text) == size)
        return text;
    error_set(error, "invalid", 0, "cannot run a command: entry %d of %s holds a NUL byte", (int)i, name);
    return NULL;
}

// Pushes a copy of the option's list, so that nobody changes it meanwhile, and an array of its strings with NULL at its
// end. NULL: an error is filled.
static const char *const *check_strings(lua_State *L, int index, const char *name, struct error *error)
{
    if (lua_getfield(L, index, name) != LUA_TTABLE)
        luaL_argerror(L, 1, lua_pushfstring(L, "option '%s' must be a list of strings", name));
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    int from = lua_gettop(L);
    lua_createtable(L, (int)count, 0);
    const char **strings = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *strings, 0);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, from, i);
        lua_rawseti(L, from + 1, i);
        strings[i - 1] = check_string(L, from + 1, i, name, error);
        if (!strings[i - 1])
            return NULL;
    }
    strings[count] = NULL;
    return strings;
}

static int64_t check_seconds(lua_State *L, int index, const char *name, lua_Number otherwise, lua_Number above)
{
    lua_Number seconds = bind_option_number(L, index, name, otherwise);
    if (!(seconds > above))
        luaL_argerror(L, index, lua_pushfstring(L, "option '%s' must be more than %f", name, above));
    return seconds < 9e15 ? (int64_t)(seconds * 1000) + 1 : INT64_MAX;
}

// What tick needs: the function lies at the top of the stack when the command starts.
struct ticker {
    lua_State *L;
    int function;
    bool failed; // its error is on the stack
};

struct news {
    const char *bytes;
    size_t size;
    lua_Integer missing;
};

// Calls the function, with the news if there are any: in a protected call, for memory may be out.
static int call_with_news(lua_State *L)
{
    const struct news *news = lua_touserdata(L, 2);
    lua_settop(L, 1);
    if (news) {
        lua_pushlstring(L, news->size ? news->bytes : "", news->size);
        lua_pushinteger(L, news->missing);
    }
    lua_call(L, news ? 2 : 0, 0);
    return 0;
}

static bool call_tick(void *data, const char *bytes, size_t size, uint64_t missing)
{
    struct ticker *ticker = data;
    struct news news = {bytes, size, (lua_Integer)missing};
    bool has_news = size > 0 || missing > 0;
    lua_pushcfunction(ticker->L, call_with_news);
    lua_pushvalue(ticker->L, ticker->function);
    if (has_news)
        lua_pushlightuserdata(ticker->L, &news);
    ticker->failed = !bind_call_tick(ticker->L, has_news ? 2 : 1);
    return !ticker->failed;
}

static void set_buffer(lua_State *L, const char *name, struct buffer *buffer)
{
    lua_pushlstring(L, buffer->size ? buffer->data : "", buffer->size);
    buffer_free(buffer);
    lua_setfield(L, -2, name);
}

static void push_outcome(lua_State *L, struct process_outcome *outcome)
{
    static const char *const endings[] = {
        [PROCESS_EXIT] = "exit",           [PROCESS_TIMEOUT] = "timeout",           [PROCESS_DEADLINE] = "deadline",
        [PROCESS_CANCELLED] = "cancelled", [PROCESS_OUTPUT_LIMIT] = "output_limit",
    };
    lua_createtable(L, 0, 14);
    bind_set_string(L, "ended", endings[outcome->ending]);
    if (outcome->exit_code >= 0)
        bind_set_integer(L, "exit_code", outcome->exit_code);
    if (outcome->signal) {
        char name[SIGNAL_NAME_SIZE];
        signal_name(outcome->signal, name);
        bind_set_string(L, "signal", name);
    }
    set_buffer(L, "stdout", &outcome->out.text);
    set_buffer(L, "stderr", &outcome->err.text);
    bind_set_boolean(L, "stdout_truncated", outcome->out.truncated);
    bind_set_boolean(L, "stderr_truncated", outcome->err.truncated);
    bind_set_integer(L, "stdout_bytes", (lua_Integer)outcome->out.printed);
    bind_set_integer(L, "stderr_bytes", (lua_Integer)outcome->err.printed);
    if (outcome->output.size)
        set_buffer(L, "output", &outcome->output);
    if (outcome->missing)
        set_buffer(L, "output_tail", &outcome->tail);
    bind_set_integer(L, "output_missing", (lua_Integer)outcome->missing);
    bind_set_integer(L, "duration_ms", outcome->duration);
    bind_set_integer(L, "cpu_time_ms", outcome->cpu_time);
    bind_set_integer(L, "max_rss_bytes", (lua_Integer)outcome->max_rss);
    bind_set_boolean(L, "out_of_memory", outcome->out_of_memory);
}

static void check_options(lua_State *L)
{
    static const char *const names[] = {
        "argv", "env",           "directory",  "stdin", "timeout", "output_limit", "on_output_limit",
        "tick", "tick_interval", "whole_news", NULL};
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    bind_check_options(L, 1, names);
}

static size_t check_output_limit(lua_State *L)
{
    lua_Integer limit = bind_option_integer(L, 1, "output_limit", -1, 0);
    luaL_argcheck(L, limit >= 0, 1, "option 'output_limit' is missing");
    return (size_t)limit;
}

static int check_directory(lua_State *L)
{
    lua_getfield(L, 1, "directory"); // stays on the stack: a tick may take it out of the table
    return bind_check_directory(L, -1);
}

static bool check_end_at_limit(lua_State *L)
{
    static const char *const choices[] = {"kill", "discard", NULL};
    lua_getfield(L, 1, "on_output_limit");
    bool end = luaL_checkoption(L, -1, NULL, choices) == 0;
    lua_pop(L, 1);
    return end;
}

static bool check_tick(lua_State *L, struct ticker *ticker)
{
    int type = lua_getfield(L, 1, "tick");
    if (type != LUA_TNIL && type != LUA_TFUNCTION)
        luaL_argerror(L, 1, "option 'tick' must be a function");
    ticker->L = L;
    ticker->function = lua_gettop(L);
    return type == LUA_TFUNCTION;
}

static int f_run(lua_State *L)
{
    struct error error = {0};
    struct ticker ticker = {0};
    check_options(L);
    lua_getfield(L, 1, "stdin"); // stays on the stack, as the directory does
    struct process_options options = {
        .directory = check_directory(L),
        .timeout = check_seconds(L, 1, "timeout", 9e15, 0),
        .output_limit = check_output_limit(L),
        .end_at_limit = check_end_at_limit(L),
        .tick_interval = check_seconds(L, 1, "tick_interval", 0.1, 0),
        .whole_news = bind_option_boolean(L, 1, "whole_news", false),
        .data = &ticker,
    };
    options.input = bind_option_string(L, 1, "stdin", &options.input_size);
    options.tick = check_tick(L, &ticker) ? call_tick : NULL;
    options.argv = check_strings(L, 1, "argv", &error);
    options.env = options.argv ? check_strings(L, 1, "env", &error) : NULL;
    if (!options.env)
        return bind_fail(L, &error);
    luaL_argcheck(L, options.argv[0], 1, "option 'argv' must not be empty");
    struct process_outcome *outcome = new_outcome(L);
    luaL_checkstack(L, LUA_MINSTACK, NULL);

    int status = process_run(&options, outcome, &error);
    if (ticker.failed) {
        process_outcome_free(outcome);
        error_clear(&error);
        return lua_error(L);
    }
    if (status < 0)
        return bind_fail(L, &error);
    push_outcome(L, outcome);
    return 1;
}

static int f_find(lua_State *L)
{
    struct error error = {0};
    const char *name = luaL_checkstring(L, 1), *path = luaL_optstring(L, 2, NULL);
    struct buffer *owner = bind_new_buffer(L);
    if (!(owner->data = spawn_find(name, path, &error)))
        return bind_fail(L, &error);
    lua_pushstring(L, owner->data);
    return 1;
}

static int f_finish(lua_State *L)
{
    struct process_left left;
    lua_Number grace = luaL_checknumber(L, 1);
    luaL_argcheck(L, grace >= 0 && grace < 9e15, 1, "must be seconds, not negative");
    lua_pushinteger(L, (lua_Integer)process_finish((int64_t)(grace * 1000), &left));
    lua_pushinteger(L, (lua_Integer)left.count);
    lua_pushinteger(L, left.first);
    return 3;
}

static int f_any(lua_State *L)
{
    lua_pushboolean(L, children_any());
    return 1;
}

static int f_usage(lua_State *L)
{
    int64_t cpu_time;
    uint64_t max_rss;
    process_usage(&cpu_time, &max_rss);
    lua_createtable(L, 0, 2);
    bind_set_integer(L, "cpu_time_ms", cpu_time);
    bind_set_integer(L, "max_rss_bytes", (lua_Integer)max_rss);
    return 1;
}

static int f_idle(lua_State *L)
{
    (void)L;
    process_idle();
    return 0;
}

static const luaL_Reg functions[] = {
    {"run", f_run},     {"any", f_any},   {"find", f_find}, {"finish", f_finish},
    {"usage", f_usage}, {"idle", f_idle}, {NULL, NULL},
};

int luaopen_native_process(lua_State *L)
{
    luaL_newlib(L, functions);
    return 1;
}
