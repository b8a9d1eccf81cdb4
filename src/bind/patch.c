// SPDX-License-Identifier: Apache-2.0
// native.patch: unified diffs, parsed and applied to bytes.
#include "core/edit/patch.h"

#include "bind/bind.h"

static const char parsed_name[] = "native.patch.parsed";

static int free_parsed(lua_State *L)
{
    patch_free(luaL_checkudata(L, 1, parsed_name));
    return 0;
}

// parse(diff) -> parsed | nil, failure. The userdata keeps the diff alive.
static int f_parse(lua_State *L)
{
    size_t size;
    struct error error = {0};
    const char *diff = luaL_checklstring(L, 1, &size);
    struct patch *patch = bind_new_handle(L, parsed_name, sizeof *patch, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    if (patch_parse(diff, size, patch, &error) < 0)
        return bind_fail(L, &error);
    return 1;
}

// Sets the field to a list of names, if there are any.
static void set_tolerated(lua_State *L, unsigned tolerated)
{
    static const char *const names[PATCH_TOLERATED_COUNT] = {"code_fence",      "prose",           "begin_patch",
                                                             "no_git_line",     "no_line_numbers", "blank_lines",
                                                             "trailing_blanks", "final_newline"};
    lua_Integer count = 0;
    if (!tolerated)
        return;
    lua_newtable(L);
    for (int i = 0; i < PATCH_TOLERATED_COUNT; i++) {
        if (!(tolerated >> i & 1))
            continue;
        lua_pushstring(L, names[i]);
        lua_seti(L, -2, ++count);
    }
    lua_setfield(L, -2, "tolerated");
}

static void push_file(lua_State *L, const struct patch_file *file)
{
    static const char *const actions[] = {"modified", "created", "deleted", "renamed", "copied", "mode_changed"};
    lua_createtable(L, 0, 15);
    bind_set_string(L, "old_path", file->old_name);
    bind_set_string(L, "new_path", file->new_name);
    bind_set_string(L, "from", file->from);
    bind_set_string(L, "to", file->to);
    bind_set_string(L, "action", actions[file->action]);
    bind_set_boolean(L, "git", file->git);
    bind_set_boolean(L, "plain", file->plain);
    if (file->prefix != PATCH_PREFIX_UNKNOWN)
        bind_set_boolean(L, "prefix", file->prefix == PATCH_PREFIX_GIT);
    bind_set_boolean(L, "whole", file->whole);
    bind_set_boolean(L, "may_create", file->may_create);
    if (file->old_mode)
        bind_set_integer(L, "old_mode", file->old_mode);
    if (file->new_mode)
        bind_set_integer(L, "new_mode", file->new_mode);
    bind_set_integer(L, "hunks", file->hunk_count);
    bind_set_integer(L, "line", file->line);
    bind_set_integer(L, "offset", file->offset);
    set_tolerated(L, file->tolerated);
}

// parsed:files() -> list; its tolerated are those of the whole diff
static int m_files(lua_State *L)
{
    const struct patch *patch = luaL_checkudata(L, 1, parsed_name);
    lua_createtable(L, (int)patch->file_count, 0);
    for (uint32_t i = 0; i < patch->file_count; i++) {
        push_file(L, &patch->files[i]);
        lua_seti(L, -2, (lua_Integer)i + 1);
    }
    set_tolerated(L, patch->tolerated);
    return 1;
}

static void push_report(lua_State *L, const struct patch_file *file, const struct patch_report *report)
{
    lua_createtable(L, 0, 8);
    bind_set_integer(L, "hunks", file->hunk_count);
    bind_set_integer(L, "added", report->added);
    bind_set_integer(L, "removed", report->removed);
    bind_set_integer(L, "offset", report->offset);
    bind_set_integer(L, "fuzz", report->fuzz);
    bind_set_integer(L, "recounted", report->recounted);
    if (report->line_ends)
        bind_set_string(L, "line_ends", report->line_ends == 'c' ? "crlf" : "lf");
    set_tolerated(L, report->tolerated);
}

// parsed:apply(index, bytes, into) -> bytes, report | nil, failure
static int m_apply(lua_State *L)
{
    size_t size;
    struct error error = {0};
    struct patch_report report;
    const struct patch *patch = luaL_checkudata(L, 1, parsed_name);
    lua_Integer index = luaL_checkinteger(L, 2);
    const char *bytes = luaL_checklstring(L, 3, &size);
    luaL_argcheck(L, index >= 1 && index <= patch->file_count, 2, "no such file in the diff");
    struct buffer *out = bind_push_shared_buffer(L);
    if (patch_apply(patch, (uint32_t)index - 1, bytes, size, out, &report, &error) < 0)
        return bind_fail(L, &error);
    lua_pushlstring(L, out->data, out->size);
    bind_empty_shared_buffer(out);
    push_report(L, &patch->files[index - 1], &report);
    return 2;
}

static const luaL_Reg functions[] = {{"parse", f_parse}, {NULL, NULL}};
static const luaL_Reg methods[] = {{"files", m_files}, {"apply", m_apply}, {NULL, NULL}};

int luaopen_native_patch(lua_State *L)
{
    bind_new_type(L, parsed_name, methods, free_parsed);
    luaL_newlib(L, functions);
    return 1;
}
