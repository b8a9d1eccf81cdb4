// SPDX-License-Identifier: Apache-2.0
// native.process: runs commands, and ends the processes that they leave.
#include "core/process/process.h"

#include "bind/bind.h"
#include "bind/bind_handles.h"
#include "core/base/cleanup.h"
#include "core/files/file_log.h"
#include "core/files/file_sync.h"
#include "core/process/process_children.h"
#include "core/process/process_leftovers.h"
#include "core/process/process_spawn.h"

#include <math.h>
#include <stdio.h>

static int free_outcome(lua_State *L)
{
    process_outcome_free(lua_touserdata(L, 1));
    return 0;
}

// Pushes an empty outcome that Lua owns.
static struct process_outcome *new_outcome(lua_State *L)
{
    static const char type[] = "native.process.outcome";
    bind_new_type(L, type, NULL, free_outcome);
    struct process_outcome *outcome = bind_new_handle(L, type, sizeof *outcome, 0);
    outcome->texts[PROCESS_STDOUT].spool.fd = outcome->texts[PROCESS_STDERR].spool.fd = -1;
    lua_toclose(L, -1);
    return outcome;
}

// The functions tick, began and hear, and the stack that holds them.
struct ticker {
    lua_State *L;
    int function, began, hear;
    bool failed; // an error of theirs is on the stack
};

struct news {
    const char *bytes;
    size_t size;
    lua_Integer missing;
};

// Calls the function, with the news if there are any. Itself called protected, because memory may be out.
static int call_with_news(lua_State *L)
{
    const struct news *news = lua_touserdata(L, 2);
    bool has_news = news->size > 0 || news->missing > 0;
    lua_settop(L, 1);
    if (has_news) {
        lua_pushlstring(L, news->size ? news->bytes : "", news->size);
        lua_pushinteger(L, news->missing);
    }
    lua_call(L, has_news ? 2 : 0, 0);
    return 0;
}

static bool call_tick(void *data, const char *bytes, size_t size, uint64_t missing)
{
    struct ticker *ticker = data;
    struct news news = {bytes, size, (lua_Integer)missing};
    lua_pushcfunction(ticker->L, call_with_news);
    lua_pushvalue(ticker->L, ticker->function);
    lua_pushlightuserdata(ticker->L, &news);
    ticker->failed = !bind_call_tick(ticker->L, 2);
    return !ticker->failed;
}

static bool call_began(void *data, pid_t command, uint64_t started)
{
    struct ticker *ticker = data;
    lua_pushvalue(ticker->L, ticker->began);
    lua_pushinteger(ticker->L, command);
    lua_pushinteger(ticker->L, (lua_Integer)started);
    ticker->failed = !bind_call_tick(ticker->L, 2);
    return !ticker->failed;
}

struct heard {
    const char *bytes;
    size_t size;
    struct buffer *answer;
    enum process_talk talk;
};

// Calls the function with what a command said; takes what it answers, and how the talk goes on. Itself called
// protected, as call_with_news.
static int call_with_words(lua_State *L)
{
    static const char *const words[] = {
        [PROCESS_TALK] = "on", [PROCESS_TALK_OVER] = "over", [PROCESS_TALK_END] = "end", NULL};
    struct heard *heard = lua_touserdata(L, 2);
    size_t size;
    lua_settop(L, 1);
    lua_pushlstring(L, heard->size ? heard->bytes : "", heard->size);
    lua_call(L, 1, 2);
    const char *answer = luaL_optlstring(L, 1, NULL, &size);
    if (answer && buffer_append(heard->answer, answer, size) < 0)
        luaL_error(L, "not enough memory");
    heard->talk = (enum process_talk)luaL_checkoption(L, 2, "on", words);
    return 0;
}

static enum process_talk call_hear(void *data, const char *bytes, size_t size, struct buffer *answer)
{
    struct ticker *ticker = data;
    struct heard heard = {bytes, size, answer, PROCESS_TALK};
    lua_pushcfunction(ticker->L, call_with_words);
    lua_pushvalue(ticker->L, ticker->hear);
    lua_pushlightuserdata(ticker->L, &heard);
    ticker->failed = !bind_call_tick(ticker->L, 2);
    return ticker->failed ? PROCESS_TALK_FAILED : heard.talk;
}

static void set_buffer(lua_State *L, const char *name, struct buffer *buffer)
{
    bind_push_bytes(L, buffer);
    lua_setfield(L, -2, name);
}

// A string; or a file, which is a log that is read, and its size.
static void set_text(lua_State *L, const char *name, struct process_text *text)
{
    if (text->spool.fd >= 0) {
        lua_createtable(L, 0, 2);
        bind_new_log(L)->fd = steal_fd(&text->spool.fd);
        lua_setfield(L, -2, "file");
        bind_set_integer(L, "size", (lua_Integer)text->spool.size);
    } else {
        bind_push_bytes(L, &text->text);
    }
    lua_setfield(L, -2, name);
}

static void push_outcome(lua_State *L, struct process_outcome *outcome)
{
    static const char *const endings[] = {
        [PROCESS_EXIT] = "exit",           [PROCESS_TIMEOUT] = "timeout",           [PROCESS_DEADLINE] = "deadline",
        [PROCESS_CANCELLED] = "cancelled", [PROCESS_OUTPUT_LIMIT] = "output_limit", [PROCESS_IDLE] = "idle",
        [PROCESS_HEARD] = "heard",
    };
    lua_createtable(L, 0, 12);
    bind_set_string(L, "ended", endings[outcome->ending]);
    if (outcome->exit_code >= 0)
        bind_set_integer(L, "exit_code", outcome->exit_code);
    if (outcome->signal)
        bind_set_integer(L, "signal", outcome->signal);
    set_text(L, "stdout", &outcome->texts[PROCESS_STDOUT]);
    set_text(L, "stderr", &outcome->texts[PROCESS_STDERR]);
    bind_set_boolean(L, "stdout_truncated", outcome->texts[PROCESS_STDOUT].truncated);
    bind_set_boolean(L, "stderr_truncated", outcome->texts[PROCESS_STDERR].truncated);
    if (outcome->output.size)
        set_buffer(L, "output", &outcome->output);
    if (outcome->missing)
        set_buffer(L, "output_tail", &outcome->tail);
    bind_set_integer(L, "output_missing", (lua_Integer)outcome->missing);
    bind_set_integer(L, "duration_ms", outcome->duration);
    bind_set_integer(L, "cpu_time_ms", outcome->cpu_time);
    bind_set_integer(L, "max_rss_bytes", (lua_Integer)outcome->max_rss);
}

// Pushes the value of an option. Returns its place, or 0 if there is none.
static int check_function(lua_State *L, const char *name)
{
    int type = lua_getfield(L, 1, name);
    if (type != LUA_TNIL && type != LUA_TFUNCTION)
        luaL_argerror(L, 1, lua_pushfstring(L, "option '%s' must be a function", name));
    return type == LUA_TFUNCTION ? lua_gettop(L) : 0;
}

static int64_t check_timeout(lua_State *L, const char *name)
{
    lua_Number seconds = bind_option_number(L, 1, name, HUGE_VAL);
    if (!(seconds > 0))
        luaL_argerror(L, 1, lua_pushfstring(L, "option '%s' must be more than 0", name));
    return bind_milliseconds(L, 1, seconds) + 1;
}

// What this pushes stays on the stack while the command runs, because a tick may change the table.
static void check_options(lua_State *L, struct process_options *options, struct ticker *ticker)
{
    static const char *const names[] = {
        "script",       "argv",         "env",          "directory",  "stdin", "timeout",
        "output_limit", "end_at_limit", "tick",         "whole_news", "apart", "spool",
        "grace",        "began",        "idle_timeout", "hear",       NULL};
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    bind_check_options(L, 1, names);
    lua_Integer limit = bind_option_integer(L, 1, "output_limit", -1, 0);
    luaL_argcheck(L, limit >= 0, 1, "option 'output_limit' is missing");
    options->output_limit = (size_t)limit;
    options->end_at_limit = bind_option_boolean(L, 1, "end_at_limit", false);
    options->apart = bind_option_boolean(L, 1, "apart", false);
    options->whole_news = bind_option_boolean(L, 1, "whole_news", false);
    options->timeout = check_timeout(L, "timeout");
    options->idle_timeout = check_timeout(L, "idle_timeout");
    options->grace = bind_milliseconds(L, 1, bind_option_number(L, 1, "grace", 2));
    lua_getfield(L, 1, "stdin");
    options->input = bind_option_string(L, 1, "stdin", &options->input_size);
    lua_getfield(L, 1, "script");
    options->script = bind_option_string(L, 1, "script", &options->script_size);
    lua_getfield(L, 1, "spool");
    options->spool = bind_option_string(L, 1, "spool", NULL);
    lua_getfield(L, 1, "directory");
    options->directory = bind_check_opened(L, -1)->fd;
    ticker->L = L;
    ticker->function = check_function(L, "tick");
    ticker->began = check_function(L, "began");
    options->tick = ticker->function ? call_tick : NULL;
    ticker->hear = check_function(L, "hear");
    options->began = ticker->began ? call_began : NULL;
    options->hear = ticker->hear ? call_hear : NULL;
    options->data = ticker;
    lua_getfield(L, 1, "argv");
    options->argv = bind_check_strings(L, -1, "argv");
    luaL_argcheck(L, options->argv[0], 1, "option 'argv' must not be empty");
    lua_getfield(L, 1, "env");
    options->env = bind_check_strings(L, -1, "env");
}

static int f_run(lua_State *L)
{
    struct error error = {0};
    struct ticker ticker = {0};
    struct process_options options = {0};
    check_options(L, &options, &ticker);
    struct process_outcome *outcome = new_outcome(L);
    luaL_checkstack(L, LUA_MINSTACK, NULL);
    file_sync_prepare();

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
    owner->data = process_spawn_find(name, path, &error);
    return bind_push_owned(L, owner, &error);
}

// finish(grace, until?) -> count of ended, of left, PID of one of these
static int f_finish(lua_State *L)
{
    struct process_left left;
    int64_t grace = bind_check_seconds(L, 1), until = bind_milliseconds(L, 2, luaL_optnumber(L, 2, HUGE_VAL));
    lua_pushinteger(L, (lua_Integer)process_finish(grace, until, &left));
    lua_pushinteger(L, (lua_Integer)left.count);
    lua_pushinteger(L, left.first);
    return 3;
}

static int f_any(lua_State *L)
{
    lua_pushboolean(L, process_children_any());
    return 1;
}

static int f_usage(lua_State *L)
{
    int64_t cpu_time;
    uint64_t max_rss;
    process_children_usage(&cpu_time, &max_rss);
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

// runner() -> the identity of this process, with a word of its own
static int f_runner(lua_State *L)
{
    char word[PROCESS_LEFTOVERS_WORD];
    const struct process_runner self = process_leftovers_self();
    process_leftovers_word(&self, word);
    lua_createtable(L, 0, 5);
    bind_set_string(L, "word", word);
    bind_set_integer(L, "pid", self.pid);
    bind_set_integer(L, "started", (lua_Integer)self.started);
    bind_set_string(L, "boot_id", self.boot_id);
    bind_set_integer(L, "pid_namespace", (lua_Integer)self.namespace);
    return 1;
}

// life(runner) -> "alive" | "gone" | nil
static int f_life(lua_State *L)
{
    static const char *const names[] = {[PROCESS_ALIVE] = "alive", [PROCESS_GONE] = "gone"};
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    struct process_runner runner = {
        .pid = (pid_t)bind_option_integer(L, 1, "pid", 0, 0),
        .started = (uint64_t)bind_option_integer(L, 1, "started", 0, 0),
        .namespace = (uint64_t)bind_option_integer(L, 1, "pid_namespace", 0, 0),
    };
    lua_getfield(L, 1, "boot_id");
    const char *boot_id = bind_option_string(L, 1, "boot_id", NULL);
    snprintf(runner.boot_id, sizeof runner.boot_id, "%s", boot_id ? boot_id : "");
    lua_pushstring(L, names[process_leftovers_life(&runner)]);
    return 1;
}

// sessions() -> set of the sessions of all processes
static int f_sessions(lua_State *L)
{
    struct buffer *owner = bind_new_buffer(L);
    struct process_pids sessions = {0};
    process_leftovers_sessions(&sessions);
    owner->data = (char *)sessions.items; // Lua may raise an error from here on
    lua_newtable(L);
    for (size_t i = 0; i < sessions.count; i++) {
        lua_pushboolean(L, 1);
        lua_rawseti(L, -2, sessions.items[i]);
    }
    return 1;
}

// The list at index: {pid, started} each. Pushes what holds them.
static const struct process_session *check_sessions(lua_State *L, int index, size_t *count)
{
    luaL_checktype(L, index, LUA_TTABLE);
    *count = lua_rawlen(L, index);
    struct process_session *sessions = lua_newuserdatauv(L, *count * sizeof *sessions, 0);
    for (size_t i = 0; i < *count; i++) {
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        luaL_checktype(L, -1, LUA_TTABLE);
        lua_getfield(L, -1, "pid");
        lua_getfield(L, -2, "started");
        sessions[i] = (struct process_session){(pid_t)luaL_checkinteger(L, -2), (uint64_t)luaL_checkinteger(L, -1)};
        lua_pop(L, 3);
    }
    return sessions;
}

// end_leftovers(words | nil, sessions, seconds) -> ended, left, PID of one
static int f_end_leftovers(lua_State *L)
{
    struct process_left left;
    struct process_marks marks = {0};
    lua_settop(L, 3);
    int64_t milliseconds = bind_check_seconds(L, 3);
    marks.words = lua_isnil(L, 1) ? NULL : bind_check_strings(L, 1, "words");
    marks.sessions = check_sessions(L, 2, &marks.session_count);
    lua_pushinteger(L, (lua_Integer)process_leftovers_end(&marks, milliseconds, &left));
    lua_pushinteger(L, (lua_Integer)left.count);
    lua_pushinteger(L, left.first);
    return 3;
}

const luaL_Reg bind_process[] = {
    {"run", f_run},
    {"any", f_any},
    {"find", f_find},
    {"finish", f_finish},
    {"usage", f_usage},
    {"idle", f_idle},
    {"runner", f_runner},
    {"life", f_life},
    {"sessions", f_sessions},
    {"end_leftovers", f_end_leftovers},
    {NULL, NULL},
};
