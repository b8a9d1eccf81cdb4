// SPDX-License-Identifier: Apache-2.0
// native.http: requests to the outside, answers read as they come.
#include "core/http/http.h"

#include "bind/bind.h"
#include "bind/bind_handles.h"

#include <string.h>

static const char client_type[] = "native.http.client", exchange_type[] = "native.http.exchange";

struct client_box {
    struct http_client *client; // NULL: closed
    lua_State *L;               // of the exchange that waits
    bool failed;                // the error of its tick is on the stack
};

struct exchange_box {
    struct http_exchange *exchange; // NULL: closed
    bool waits;                     // a tick runs, which must not close it
};

// User values of an exchange, and of a client. The client's strings live as long as the table of its settings.
enum { KEPT_CLIENT = 1, KEPT_BODY, KEPT_COUNT = KEPT_BODY };
enum { KEPT_TICK = 1, KEPT_SETTINGS, KEPT_OF_CLIENT = KEPT_SETTINGS };

static const char *const setting_names[] = {"http_proxy", "https_proxy", "no_proxy", "ca_file", "ca_directory", NULL};
static const char *const request_names[] = {
    "method",       "url",           "headers",    "body", "connect_timeout",  "first_timeout",
    "idle_timeout", "whole_timeout", "body_limit", "once", "ignore_interrupt", "raw_files",
    NULL,
};

static int f_client(lua_State *L)
{
    struct error error = {0};
    lua_settop(L, 1);
    bind_check_options(L, 1, setting_names);
    struct http_settings settings = {
        .http_proxy = bind_option_string(L, 1, "http_proxy", NULL),
        .https_proxy = bind_option_string(L, 1, "https_proxy", NULL),
        .no_proxy = bind_option_string(L, 1, "no_proxy", NULL),
        .ca_file = bind_option_string(L, 1, "ca_file", NULL),
        .ca_directory = bind_option_string(L, 1, "ca_directory", NULL),
    };
    struct client_box *box = bind_new_handle(L, client_type, sizeof *box, KEPT_OF_CLIENT);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, KEPT_SETTINGS);
    box->client = http_client_new(&settings, &error);
    return box->client ? 1 : bind_fail(L, &error);
}

static int client_gc(lua_State *L)
{
    struct client_box *box = luaL_checkudata(L, 1, client_type);
    http_client_free(box->client);
    box->client = NULL;
    return 0;
}

// The waiting exchange is at index 1. The tick may wait for other exchanges of the client itself, in any coroutine.
static bool call_tick(void *data)
{
    struct client_box *box = data;
    lua_State *L = box->L;
    lua_getiuservalue(L, 1, KEPT_CLIENT);
    lua_getiuservalue(L, -1, KEPT_TICK);
    lua_remove(L, -2);
    box->failed = !bind_call_tick(L, 0);
    box->L = L;
    return !box->failed;
}

static int m_tick(lua_State *L)
{
    struct client_box *box = luaL_checkudata(L, 1, client_type);
    luaL_argcheck(L, box->client, 1, "the client is closed");
    bool wanted = !lua_isnoneornil(L, 2);
    if (wanted)
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    lua_getiuservalue(L, 1, KEPT_TICK);
    lua_insert(L, 2);
    lua_setiuservalue(L, 1, KEPT_TICK);
    http_client_tick(box->client, wanted ? call_tick : NULL, box);
    return 1;
}

static int64_t milliseconds(lua_State *L, const char *name, lua_Number otherwise)
{
    return bind_milliseconds(L, 2, bind_option_number(L, 2, name, otherwise));
}

static const char *required_string(lua_State *L, const char *name)
{
    const char *value = bind_option_string(L, 2, name, NULL);
    if (!value)
        luaL_argerror(L, 2, lua_pushfstring(L, "option '%s' is missing", name));
    return value;
}

// A line end in a header would smuggle in another header.
static const char *const *header_list(lua_State *L)
{
    if (lua_getfield(L, 2, "headers") == LUA_TNIL)
        return NULL;
    const char **list = bind_check_strings(L, -1, "headers");
    for (size_t i = 0; list[i]; i++)
        luaL_argcheck(L, !strpbrk(list[i], "\r\n"), 2, "option 'headers' must be a list of single lines");
    return list;
}

// Part i of a body, an opened file or as bind_check_part. Pushes what keeps it alive. Returns how many elements it has.
static lua_Integer check_part(lua_State *L, int list, lua_Integer i, bool raw, struct http_part *part)
{
    if (lua_rawgeti(L, list, i) == LUA_TUSERDATA) {
        const struct bind_opened *opened = bind_check_opened(L, lua_gettop(L));
        *part = (struct http_part){.part = {.fd = opened->fd, .size = opened->size}, .base64 = !raw};
        memcpy(part->sha256, opened->sha256, sizeof part->sha256);
        return 1;
    }
    *part = (struct http_part){.base64 = false};
    lua_Integer taken = bind_check_part(L, list, i, &part->part);
    if (taken > 1) {
        lua_pop(L, 1);
        lua_getfield(L, list, "from");
    }
    return taken;
}

// Fills the request's body from the option, a string or a list of parts. The exchange at index keeps it alive.
static void read_body(lua_State *L, struct http_request *request, int exchange)
{
    if (lua_getfield(L, 2, "body") == LUA_TNIL)
        return;
    if (!lua_istable(L, -1)) {
        lua_createtable(L, 1, 0);
        lua_insert(L, -2);
        lua_rawseti(L, -2, 1);
    }
    int list = lua_gettop(L);
    bool raw = bind_option_boolean(L, 2, "raw_files", false);
    lua_Integer length = luaL_len(L, list);
    lua_createtable(L, (int)length + 1, 0);
    struct http_part *parts = lua_newuserdatauv(L, ((size_t)length + 1) * sizeof *parts, 0);
    lua_rawseti(L, -2, length + 1);
    for (lua_Integer i = 1; i <= length;) {
        lua_Integer at = i;
        i += check_part(L, list, at, raw, &parts[request->body_count++]);
        lua_rawseti(L, -2, at);
    }
    lua_setiuservalue(L, exchange, KEPT_BODY);
    request->body = parts;
}

static int m_open(lua_State *L)
{
    struct error error = {0};
    struct client_box *client = luaL_checkudata(L, 1, client_type);
    luaL_argcheck(L, client->client, 1, "the client is closed");
    luaL_checktype(L, 2, LUA_TTABLE);
    bind_check_options(L, 2, request_names);
    struct exchange_box *box = bind_new_handle(L, exchange_type, sizeof *box, KEPT_COUNT);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, KEPT_CLIENT);
    struct http_request request = {
        .method = required_string(L, "method"),
        .url = required_string(L, "url"),
        .connect_timeout = milliseconds(L, "connect_timeout", 10),
        .first_timeout = milliseconds(L, "first_timeout", 60),
        .idle_timeout = milliseconds(L, "idle_timeout", 60),
        .whole_timeout = milliseconds(L, "whole_timeout", 0),
        .body_limit = (size_t)bind_option_integer(L, 2, "body_limit", 16 << 20, 0),
        .once = bind_option_boolean(L, 2, "once", false),
        .ignore_interrupt = bind_option_boolean(L, 2, "ignore_interrupt", false),
    };
    int exchange = lua_gettop(L);
    read_body(L, &request, exchange);
    request.headers = header_list(L);
    box->exchange = http_open(client->client, &request, &error);
    lua_settop(L, exchange);
    return box->exchange ? 1 : bind_fail(L, &error);
}

static struct exchange_box *check_exchange(lua_State *L)
{
    struct exchange_box *box = luaL_checkudata(L, 1, exchange_type);
    luaL_argcheck(L, box->exchange, 1, "the exchange is closed");
    return box;
}

// The exchange at index 1, whose client's tick is called while it waits: as long as box->waits.
static struct exchange_box *begin_wait(lua_State *L, struct client_box **client)
{
    struct exchange_box *box = check_exchange(L);
    luaL_argcheck(L, !box->waits, 1, "the exchange waits already");
    box->waits = true;
    lua_getiuservalue(L, 1, KEPT_CLIENT);
    *client = lua_touserdata(L, -1);
    (*client)->L = L;
    (*client)->failed = false;
    lua_pop(L, 1);
    return box;
}

// Returns the failure of a wait, or raises the error of the tick that ended it.
static int fail_wait(lua_State *L, const struct client_box *client, struct error *error)
{
    if (!client->failed)
        return bind_fail(L, error);
    error_clear(error);
    return lua_error(L);
}

static int m_status(lua_State *L)
{
    struct error error = {0};
    struct client_box *client;
    struct exchange_box *box = begin_wait(L, &client);
    int status = http_status(box->exchange, &error);
    box->waits = false;
    if (status < 0)
        return fail_wait(L, client, &error);
    lua_pushinteger(L, status);
    return 1;
}

static int m_header(lua_State *L)
{
    const struct exchange_box *box = check_exchange(L);
    lua_pushstring(L, http_header(box->exchange, luaL_checkstring(L, 2)));
    return 1;
}

static int m_read(lua_State *L)
{
    struct error error = {0};
    const char *bytes = NULL;
    struct client_box *client;
    struct exchange_box *box = begin_wait(L, &client);
    ssize_t size = http_read(box->exchange, &bytes, &error);
    box->waits = false;
    if (size < 0)
        return fail_wait(L, client, &error);
    if (size == 0)
        lua_pushnil(L);
    else
        lua_pushlstring(L, bytes, (size_t)size);
    return 1;
}

static int m_line(lua_State *L)
{
    struct error error = {0};
    const char *line = NULL;
    bool ended = false;
    struct client_box *client;
    struct exchange_box *box = begin_wait(L, &client);
    ssize_t size = http_read_line(box->exchange, &line, &ended, &error);
    box->waits = false;
    if (size < 0)
        return fail_wait(L, client, &error);
    if (!line) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushlstring(L, line, (size_t)size);
    lua_pushboolean(L, ended);
    return 2;
}

static int m_idle(lua_State *L)
{
    struct exchange_box *box = check_exchange(L);
    http_set_idle_timeout(box->exchange, bind_check_seconds(L, 2));
    return 0;
}

static int m_proxy(lua_State *L)
{
    lua_pushstring(L, http_proxy(check_exchange(L)->exchange));
    return 1;
}

static int m_close(lua_State *L)
{
    struct exchange_box *box = luaL_checkudata(L, 1, exchange_type);
    luaL_argcheck(L, !box->waits, 1, "the exchange waits: its own tick cannot close it");
    http_close(box->exchange);
    box->exchange = NULL;
    return 0;
}

static const luaL_Reg client_methods[] = {{"open", m_open}, {"tick", m_tick}, {NULL, NULL}};
static const luaL_Reg exchange_methods[] = {
    {"status", m_status}, {"header", m_header}, {"read", m_read},   {"line", m_line},
    {"idle", m_idle},     {"proxy", m_proxy},   {"close", m_close}, {NULL, NULL},
};
static const luaL_Reg functions[] = {{"client", f_client}, {NULL, NULL}};

int luaopen_native_http(lua_State *L)
{
    bind_new_type(L, client_type, client_methods, client_gc);
    bind_new_type(L, exchange_type, exchange_methods, m_close);
    luaL_newlib(L, functions);
    return 1;
}
