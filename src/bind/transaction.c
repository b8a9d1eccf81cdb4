// SPDX-License-Identifier: Apache-2.0
// native.transaction: changes several files of a directory, all of them or none.
#include "core/files/workspace_transaction.h"

#include "bind/bind.h"
#include "core/files/workspace_replace.h"

static const char transaction_type[] = "native.transaction";
static const char *const kinds[] = {"nothing", "put", "remove", "mode", NULL}; // enum change_kind

static struct transaction *check_transaction(lua_State *L)
{
    struct transaction *const *transaction = luaL_checkudata(L, 1, transaction_type);
    luaL_argcheck(L, *transaction, 1, "the transaction is over");
    return *transaction;
}

static lua_Integer check_mode(lua_State *L, int index)
{
    lua_Integer mode = luaL_checkinteger(L, index);
    luaL_argcheck(L, mode >= 0 && mode <= 0777, index, "must hold permission bits only, at most 0777");
    return mode;
}

static int answer(lua_State *L, int outcome, struct error *error)
{
    if (outcome < 0)
        return bind_fail(L, error);
    lua_pushboolean(L, 1);
    return 1;
}

// transaction:write(path, content, mode) -> true | nil, failure
static int transaction_write_method(lua_State *L)
{
    size_t size;
    struct error error = {0};
    struct transaction *transaction = check_transaction(L);
    const char *path = bind_check_path(L, 2, &error);
    const char *content = luaL_checklstring(L, 3, &size);
    int mode = lua_isnoneornil(L, 4) ? MODE_AS_BEFORE : (int)check_mode(L, 4);
    return answer(L, path ? transaction_write(transaction, path, content, size, mode, &error) : -1, &error);
}

// transaction:symlink(path, target) -> true | nil, failure
static int transaction_symlink_method(lua_State *L)
{
    struct error error = {0};
    struct transaction *transaction = check_transaction(L);
    const char *path = bind_check_path(L, 2, &error);
    const char *target = path ? bind_check_path(L, 3, &error) : NULL;
    return answer(L, target ? transaction_symlink(transaction, path, target, &error) : -1, &error);
}

// transaction:remove(path) -> true | nil, failure
static int transaction_remove_method(lua_State *L)
{
    struct error error = {0};
    struct transaction *transaction = check_transaction(L);
    const char *path = bind_check_path(L, 2, &error);
    return answer(L, path ? transaction_remove(transaction, path, &error) : -1, &error);
}

// transaction:chmod(path, mode) -> true | nil, failure
static int transaction_chmod_method(lua_State *L)
{
    struct error error = {0};
    struct transaction *transaction = check_transaction(L);
    const char *path = bind_check_path(L, 2, &error);
    int mode = (int)check_mode(L, 3);
    return answer(L, path ? transaction_chmod(transaction, path, mode, &error) : -1, &error);
}

static int transaction_close(lua_State *L)
{
    struct transaction **transaction = luaL_checkudata(L, 1, transaction_type);
    transaction_end(*transaction);
    *transaction = NULL;
    return 0;
}

// As in native.plan.change. Readers of the plan ignore fields that are 0 or missing.
static void push_change(lua_State *L, const struct change *change)
{
    lua_createtable(L, 0, 6);
    bind_set_string(L, "kind", kinds[change->kind]);
    bind_set_string(L, "path", change->path);
    bind_set_string(L, "other", change->other);
    bind_set_string(L, "aside", change->aside);
    bind_set_integer(L, "kept", (lua_Integer)change->kept);
    bind_set_integer(L, "old_mode", change->old_mode);
}

// transaction:plan() -> {changes=, directories=} | nil, failure
static int transaction_plan_method(lua_State *L)
{
    struct plan plan;
    struct error error = {0};
    lua_Integer count = 0;
    if (transaction_plan(check_transaction(L), &plan, &error) < 0)
        return bind_fail(L, &error);
    lua_createtable(L, 0, 2);
    lua_createtable(L, (int)plan.count, 0);
    for (size_t i = 0; i < plan.count; i++) {
        if (plan.changes[i].kind == CHANGE_NOTHING)
            continue;
        push_change(L, &plan.changes[i]);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "changes");
    lua_createtable(L, (int)plan.directory_count, 0);
    for (size_t i = 0; i < plan.directory_count; i++) {
        lua_createtable(L, 0, 2);
        bind_set_string(L, "path", plan.directories[i].path);
        bind_set_integer(L, "mode", plan.directories[i].mode);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "directories");
    return 1;
}

// transaction:commit(keep) -> true | nil, failure
static int transaction_commit_method(lua_State *L)
{
    struct error error = {0};
    bool keep = lua_toboolean(L, 2);
    int outcome = transaction_commit(check_transaction(L), &error);
    if (!keep)
        transaction_close(L);
    return answer(L, outcome, &error);
}

// transaction:revert() -> true | nil, failure
static int transaction_revert_method(lua_State *L)
{
    struct error error = {0};
    return answer(L, transaction_revert(check_transaction(L), &error), &error);
}

static const luaL_Reg methods[] = {
    {"write", transaction_write_method},
    {"symlink", transaction_symlink_method},
    {"remove", transaction_remove_method},
    {"chmod", transaction_chmod_method},
    {"plan", transaction_plan_method},
    {"commit", transaction_commit_method},
    {"revert", transaction_revert_method},
    {"close", transaction_close},
    {NULL, NULL},
};

// root:transaction() -> transaction, to be declared <close>
int bind_root_transaction(lua_State *L)
{
    const struct workspace *workspace = bind_check_root(L, 1);
    bind_new_type(L, transaction_type, methods, transaction_close);
    struct transaction **transaction = bind_new_handle(L, transaction_type, sizeof *transaction, 1);
    lua_pushvalue(L, 1); // the directory lives as long as its transaction
    lua_setiuservalue(L, -2, 1);
    *transaction = transaction_begin(workspace);
    if (!*transaction)
        luaL_error(L, "not enough memory");
    return 1;
}

static char *field_string(lua_State *L, const char *name)
{
    return (char *)bind_option_string(L, -1, name, NULL);
}

// The change at the top of the stack; its strings live as long as the table.
static struct change check_change(lua_State *L)
{
    lua_getfield(L, -1, "kind");
    enum change_kind kind = (enum change_kind)luaL_checkoption(L, -1, NULL, kinds);
    lua_pop(L, 1);
    struct change change = {
        .path = field_string(L, "path"),
        .other = field_string(L, "other"),
        .aside = field_string(L, "aside"),
        .kind = kind,
        .kept = (size_t)bind_option_integer(L, -1, "kept", 0, 0),
        .old_mode = (mode_t)bind_option_integer(L, -1, "old_mode", 0, 0) & 07777,
    };
    luaL_argcheck(L, change.path, 2, "a change has no path");
    if ((kind == CHANGE_PUT && !change.other) || (kind == CHANGE_REMOVE && !change.aside))
        change.kind = CHANGE_NOTHING;
    return change;
}

static struct cleared check_directory(lua_State *L)
{
    struct cleared directory = {field_string(L, "path"), (mode_t)bind_option_integer(L, -1, "mode", 0, 0) & 07777};
    luaL_argcheck(L, directory.path, 2, "a directory has no path");
    return directory;
}

// Pushes the list of a field of the plan at index 2, and room for as many structures.
static void *push_list(lua_State *L, const char *field, size_t size, size_t *count)
{
    luaL_argcheck(L, lua_getfield(L, 2, field) == LUA_TTABLE, 2, "a plan lacks a list");
    *count = (size_t)lua_rawlen(L, -1);
    void *room = lua_newuserdatauv(L, (*count + 1) * size, 0);
    lua_insert(L, -2);
    return room;
}

// root:recover(plan, committed) -> true | nil, failure
int bind_root_recover(lua_State *L)
{
    struct error error = {0};
    struct plan plan;
    const struct workspace *workspace = bind_check_root(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    bool committed = lua_toboolean(L, 3);
    struct change *changes = push_list(L, "changes", sizeof *changes, &plan.count);
    for (size_t i = 0; i < plan.count; i++, lua_pop(L, 1)) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        changes[i] = check_change(L);
    }
    struct cleared *directories = push_list(L, "directories", sizeof *directories, &plan.directory_count);
    for (size_t i = 0; i < plan.directory_count; i++, lua_pop(L, 1)) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        directories[i] = check_directory(L);
    }
    plan.changes = changes;
    plan.directories = directories;
    return answer(L, transaction_recover(workspace, &plan, committed, &error), &error);
}
