// SPDX-License-Identifier: Apache-2.0
// native.edit: the hunks of a diff, read line by line and applied to bytes.
#include "core/edit/edit.h"

#include "bind/bind.h"
#include "bind/bind_handles.h"

#include <string.h>

static const char hunks_name[] = "native.edit.hunks", content_name[] = "native.edit.content";

enum { SMALL = 1 << 20 }; // bytes of a file; a larger one that was changed is not copied into a string

static int free_content(lua_State *L)
{
    buffer_free(luaL_checkudata(L, 1, content_name));
    return 0;
}

const char *bind_check_content(lua_State *L, int index, size_t *size)
{
    const struct buffer *content = luaL_testudata(L, index, content_name);
    if (!content)
        return luaL_checklstring(L, index, size);
    luaL_argcheck(L, content->data, index, "the content is closed");
    *size = content->size;
    return content->data;
}

static int free_hunks(lua_State *L)
{
    struct edit_hunks *hunks = luaL_checkudata(L, 1, hunks_name);
    free(hunks->items);
    *hunks = (struct edit_hunks){0};
    return 0;
}

static struct edit_hunks *check_hunks(lua_State *L)
{
    struct edit_hunks *hunks = luaL_checkudata(L, 1, hunks_name);
    luaL_argcheck(L, hunks->diff, 1, "the hunks are closed");
    return hunks;
}

// hunks(diff) -> hunks. The userdata keeps the diff alive.
static int f_hunks(lua_State *L)
{
    size_t size;
    const char *diff = luaL_checklstring(L, 1, &size);
    luaL_argcheck(L, size <= EDIT_MAX_DIFF, 1, "the diff is too large");
    struct edit_hunks *hunks = bind_new_handle(L, hunks_name, sizeof *hunks, 1);
    hunks->diff = diff;
    hunks->size = (uint32_t)size;
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

static uint32_t check_offset(lua_State *L, int index, uint32_t from, const struct edit_hunks *hunks)
{
    lua_Integer offset = luaL_checkinteger(L, index) - 1;
    luaL_argcheck(L, offset >= from && offset <= hunks->size, index, "no such place in the diff");
    return (uint32_t)offset;
}

// What was read, from the hunk first on.
static int push_read(lua_State *L, const struct edit_hunks *hunks, uint32_t first)
{
    if (first == hunks->count)
        return 0;
    const struct edit_hunk *items = hunks->items, *last = &items[hunks->count - 1];
    bool removes = false, adds = false;
    for (uint32_t i = first; i < hunks->count; i++) {
        removes |= items[i].old_count > 0;
        adds |= items[i].new_count > 0;
    }
    lua_pushinteger(L, (lua_Integer)last->end + 1);
    lua_pushinteger(L, hunks->count - first);
    lua_pushinteger(L, (lua_Integer)last->header + 1);
    lua_pushboolean(L, removes);
    lua_pushboolean(L, adds);
    lua_pushboolean(L, !removes && !items[first].old_start && !items[first].by_content);
    return 6;
}

// hunks:read(number, at, body, limit, by_content, at_end) -> after, count, header, removes, adds, is_new | nothing |
// nil, failure. Without body, the hunks that are as long as their @@ lines say; else one of the lines from body to
// limit.
static int m_read(lua_State *L)
{
    struct error error = {0};
    struct edit_hunks *hunks = check_hunks(L);
    lua_Integer number = luaL_checkinteger(L, 2);
    struct edit_hunk hunk = {.header = check_offset(L, 3, 0, hunks), .by_content = lua_toboolean(L, 6)};
    bool is_one = !lua_isnoneornil(L, 4);
    hunk.body = is_one ? check_offset(L, 4, hunk.header, hunks) : 0;
    uint32_t limit = is_one ? check_offset(L, 5, hunk.body, hunks) : 0;
    hunk.at_end = lua_toboolean(L, 7);
    luaL_argcheck(L, number >= 1 && number <= (lua_Integer)hunks->count + 1, 2, "not the next hunk");
    hunks->count = (uint32_t)number - 1;
    if ((is_one ? edit_add_hunk(hunks, &hunk, limit, &error) : edit_read_hunks(hunks, hunk.header, &error)) < 0)
        return bind_fail(L, &error);
    return push_read(L, hunks, (uint32_t)number - 1);
}

static void push_report(lua_State *L, uint32_t hunks, const struct edit_report *report)
{
    static const char *const names[EDIT_TOLERATED_COUNT] = {"blank_lines", "trailing_blanks", "line_ends",
                                                            "final_newline", "indentation"};
    lua_createtable(L, 0, 8);
    bind_set_integer(L, "hunks", hunks);
    bind_set_integer(L, "added", report->added);
    bind_set_integer(L, "removed", report->removed);
    bind_set_integer(L, "offset", report->offset);
    bind_set_integer(L, "fuzz", report->fuzz);
    if (report->line_ends)
        bind_set_string(L, "line_ends", report->line_ends == EDIT_ENDS_CRLF ? "crlf" : "lf");
    lua_newtable(L);
    for (int i = 0; i < EDIT_TOLERATED_COUNT; i++)
        if (report->tolerated >> i & 1)
            bind_set_boolean(L, names[i], true);
    lua_setfield(L, -2, "tolerated");
}

// A failure says which hunk it is about, and where.
static int fail(lua_State *L, const struct edit_hunk *hunk, const struct edit_report *report, struct error *error)
{
    bind_fail(L, error);
    bind_set_integer(L, "hunk", report->hunk);
    bind_set_integer(L, "header", (lua_Integer)hunk->header + 1);
    bind_set_integer(L, "body", (lua_Integer)hunk->body + 1);
    bind_set_integer(L, "last", hunk->end);
    bind_set_integer(L, "line", report->line);
    bind_set_integer(L, "other", report->other);
    return 2;
}

// hunks:apply(first, count, bytes, keep?) -> bytes, or, of a large file, content; report | nil, failure. Bytes that the
// hunks leave as they are come back as the same string.
static int m_apply(lua_State *L)
{
    size_t size;
    struct error error = {0};
    struct edit_report report;
    const struct edit_hunks *hunks = check_hunks(L);
    lua_Integer first = luaL_checkinteger(L, 2), count = luaL_checkinteger(L, 3);
    const char *bytes = luaL_checklstring(L, 4, &size);
    luaL_argcheck(L, first >= 1 && count >= 1 && count <= hunks->count - first + 1, 2, "no such hunk");
    luaL_argcheck(L, size <= EDIT_MAX_TARGET, 4, "too large");
    bool keep = lua_toboolean(L, 5) && size > SMALL;
    struct buffer *out = keep ? bind_new_handle(L, content_name, sizeof *out, 0) : bind_push_shared_buffer(L);
    if (edit_apply(hunks, (uint32_t)first - 1, (uint32_t)count, bytes, size, out, &report, &error) < 0)
        return report.hunk ? fail(L, &hunks->items[first + report.hunk - 2], &report, &error) : bind_fail(L, &error);
    if (size > 0 && out->size == size && memcmp(out->data, bytes, size) == 0)
        lua_pushvalue(L, 4);
    else if (!keep)
        lua_pushlstring(L, out->data, out->size);
    if (!keep)
        bind_empty_shared_buffer(out);
    push_report(L, (uint32_t)count, &report);
    return 2;
}

static const luaL_Reg functions[] = {{"hunks", f_hunks}, {NULL, NULL}};
static const luaL_Reg methods[] = {{"read", m_read}, {"apply", m_apply}, {NULL, NULL}};

int luaopen_native_edit(lua_State *L)
{
    bind_new_type(L, content_name, NULL, free_content);
    bind_new_type(L, hunks_name, methods, free_hunks);
    luaL_newlib(L, functions);
    return 1;
}
