// SPDX-License-Identifier: Apache-2.0
// native.process: commands and their trees.
#include "core/process.h"

#include "bind/bind.h"
#include "core/process_text.h"
#include "core/tree.h"

#include <string.h>
#include <sys/resource.h>

static const char run_type[] = "native process run"; // never seen by Lua code

// What a run holds while Lua can raise an error.
struct run_box {
    struct process_outcome outcome;
    struct process_text out, err;
    struct buffer blend;
    lua_State *L;
    int tick; // stack index of the function, 0: none
    bool raised;
};

static int run_gc(lua_State *L)
{
    struct run_box *box = luaL_checkudata(L, 1, run_type);
    process_outcome_free(&box->outcome);
    buffer_free(&box->out.copy);
    buffer_free(&box->err.copy);
    buffer_free(&box->blend);
    return 0;
}

static const char *const option_names[] = {
    "argv", "env", "directory", "stdin", "timeout", "output_limit", "on_output_limit", "tick", "tick_interval", NULL,
};

// The strings of option name, NULL-terminated, in memory of the Lua state (left on the stack).
static char **string_list(lua_State *L, const char *name)
{
    if (lua_getfield(L, 1, name) != LUA_TTABLE)
        luaL_argerror(L, 1, lua_pushfstring(L, "option '%s' must be a list of strings", name));
    lua_Integer count = luaL_len(L, -1);
    char **list = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *list, 0);
    for (lua_Integer i = 0; i < count; i++) {
        size_t size;
        lua_rawgeti(L, -2, i + 1);
        list[i] = (char *)lua_tolstring(L, -1, &size);
        if (!list[i] || strlen(list[i]) != size)
            luaL_argerror(L, 1, lua_pushfstring(L, "option '%s' must be a list of strings without NUL", name));
        lua_pop(L, 1);
    }
    list[count] = NULL;
    return list;
}

static int on_tick(void *context)
{
    struct run_box *box = context;
    lua_pushvalue(box->L, box->tick);
    if (lua_pcall(box->L, 0, 0, 0) == LUA_OK)
        return 0;
    box->raised = true; // the error stays on the stack
    box->tick = 0;
    return 1;
}

static int tick_once(void *context)
{
    const struct run_box *box = context;
    return box->tick ? on_tick(context) : 0;
}

static void read_options(lua_State *L, struct process_options *options, struct run_box *box)
{
    static const char *const past_limit[] = {"kill", "discard", NULL};
    lua_Number timeout = bind_option_number(L, 1, "timeout", -1);
    lua_Number interval = bind_option_number(L, 1, "tick_interval", 0.1);
    options->argv = string_list(L, "argv");
    luaL_argcheck(L, options->argv[0], 1, "option 'argv' is empty");
    options->environment = string_list(L, "env");
    lua_getfield(L, 1, "directory");
    options->directory = bind_check_directory(L, lua_gettop(L));
    options->input = bind_option_string(L, 1, "stdin", &options->input_size);
    options->timeout = timeout < 0 ? -1 : timeout < 9e15 ? (int64_t)(timeout * 1000) : INT64_MAX / 2;
    options->output_limit = (size_t)bind_option_integer(L, 1, "output_limit", 0, 0);
    lua_getfield(L, 1, "on_output_limit");
    options->discard = luaL_checkoption(L, lua_gettop(L), "kill", past_limit) == 1;
    options->tick_interval = interval > 0.001 ? (int64_t)(interval * 1000) : 1;
    if (lua_getfield(L, 1, "tick") != LUA_TNIL) {
        luaL_checktype(L, -1, LUA_TFUNCTION);
        box->tick = lua_gettop(L);
        options->tick = tick_once;
        options->tick_context = box;
    }
}

static void set_integer(lua_State *L, const char *name, lua_Integer value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

static void set_text(lua_State *L, const char *name, const char *flag, const struct process_text *text)
{
    lua_pushlstring(L, text->bytes ? text->bytes : "", text->size);
    lua_setfield(L, -2, name);
    lua_pushboolean(L, text->truncated);
    lua_setfield(L, -2, flag);
}

static int prepare_texts(struct run_box *box, const struct process_options *options)
{
    struct process_outcome *outcome = &box->outcome;
    if (process_text(&outcome->out, options->output_limit, &box->out) < 0 ||
        process_text(&outcome->err, options->output_limit - box->out.size, &box->err) < 0 ||
        process_blend(outcome, &box->blend) < 0)
        return -1;
    // Repair can make a text longer than what was printed.
    if (outcome->end == PROCESS_EXIT && !options->discard && (box->out.truncated || box->err.truncated))
        outcome->end = PROCESS_OUTPUT_LIMIT;
    return 0;
}

static void push_outcome(lua_State *L, const struct run_box *box)
{
    static const char *const ends[] = {"exit", "timeout", "deadline", "cancelled", "output_limit", "tick"};
    const struct process_outcome *outcome = &box->outcome;
    lua_createtable(L, 0, 13);
    lua_pushstring(L, ends[outcome->end]);
    lua_setfield(L, -2, "ended");
    if (outcome->signal) {
        lua_pushstring(L, process_signal_name(outcome->signal));
        lua_setfield(L, -2, "signal");
    } else {
        set_integer(L, "exit_code", outcome->exit_code);
    }
    set_text(L, "stdout", "stdout_truncated", &box->out);
    set_text(L, "stderr", "stderr_truncated", &box->err);
    set_integer(L, "stdout_bytes", (lua_Integer)outcome->out.seen);
    set_integer(L, "stderr_bytes", (lua_Integer)outcome->err.seen);
    lua_pushlstring(L, box->blend.size ? box->blend.data : "", box->blend.size);
    lua_setfield(L, -2, "output");
    set_integer(L, "duration_ms", outcome->duration);
    set_integer(L, "cpu_time_ms", outcome->cpu_time);
    set_integer(L, "max_rss_bytes", outcome->max_rss);
}

// run(options) -> outcome | nil, failure
static int f_run(lua_State *L)
{
    struct error error = {0};
    struct process_options options = {0};
    luaL_checktype(L, 1, LUA_TTABLE);
    bind_check_options(L, 1, option_names);
    struct run_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = (struct run_box){.L = L};
    luaL_setmetatable(L, run_type);
    read_options(L, &options, box);
    luaL_checkstack(L, 8, NULL);
    int failed = process_run(&options, &box->outcome, &error);
    if (box->raised)
        return lua_error(L);
    if (failed < 0)
        return bind_fail(L, &error);
    if (prepare_texts(box, &options) < 0)
        return luaL_error(L, "out of memory");
    push_outcome(L, box);
    return 1;
}

// finish(grace seconds) -> count
static int f_finish(lua_State *L)
{
    lua_Number grace = luaL_checknumber(L, 1);
    luaL_argcheck(L, grace >= 0 && grace <= 3600, 1, "must be from 0 to 3600 seconds");
    lua_pushinteger(L, tree_finish((int)(grace * 1000)));
    return 1;
}

static int64_t cpu_time(const struct rusage *usage)
{
    return (int64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000 +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1000;
}

// usage() -> {cpu_time_ms =, max_rss_bytes =}
static int f_usage(lua_State *L)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    lua_createtable(L, 0, 2);
    set_integer(L, "cpu_time_ms", cpu_time(&own) + cpu_time(&children));
    set_integer(L, "max_rss_bytes",
                (own.ru_maxrss > children.ru_maxrss ? own.ru_maxrss : children.ru_maxrss) * (lua_Integer)1024);
    return 1;
}

static int f_idle(lua_State *L)
{
    (void)L;
    process_idle();
    return 0;
}

static const luaL_Reg functions[] = {
    {"run", f_run}, {"finish", f_finish}, {"usage", f_usage}, {"idle", f_idle}, {NULL, NULL},
};

int luaopen_native_process(lua_State *L)
{
    luaL_newmetatable(L, run_type);
    lua_pushcfunction(L, run_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
