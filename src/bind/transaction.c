// SPDX-License-Identifier: Apache-2.0
// native.transaction: a change of several files of a folder that is all or nothing.
#include "core/workspace_transaction.h"

#include "bind/bind.h"
#include "core/workspace_replace.h"

static const char transaction_type[] = "native.transaction";

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
    const char *content = bind_check_bytes(L, 3, &size);
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

// transaction:commit() -> true | nil, failure
static int transaction_commit_method(lua_State *L)
{
    struct error error = {0};
    int outcome = transaction_commit(check_transaction(L), &error);
    transaction_close(L);
    return answer(L, outcome, &error);
}

static const luaL_Reg methods[] = {
    {"write", transaction_write_method}, {"symlink", transaction_symlink_method}, {"remove", transaction_remove_method},
    {"chmod", transaction_chmod_method}, {"commit", transaction_commit_method},   {NULL, NULL},
};
static const luaL_Reg metamethods[] = {{"__gc", transaction_close}, {"__close", transaction_close}, {NULL, NULL}};

static void set_type(lua_State *L)
{
    if (luaL_newmetatable(L, transaction_type)) {
        luaL_setfuncs(L, metamethods, 0);
        luaL_newlib(L, methods);
        lua_setfield(L, -2, "__index");
    }
    lua_setmetatable(L, -2);
}

// folder:transaction() -> transaction, to be declared <close>
int bind_folder_transaction(lua_State *L)
{
    const struct workspace *workspace = bind_check_folder(L, 1);
    struct transaction **transaction = lua_newuserdatauv(L, sizeof *transaction, 1);
    *transaction = NULL;
    set_type(L);
    lua_pushvalue(L, 1); // the folder lives as long as its transaction
    lua_setiuservalue(L, -2, 1);
    *transaction = transaction_begin(workspace);
    if (!*transaction)
        return luaL_error(L, "not enough memory");
    return 1;
}
