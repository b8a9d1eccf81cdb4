// SPDX-License-Identifier: Apache-2.0
// native.confine: the rules by which the kernel confines commands.
#include "core/confine/confine.h"

#include "bind/bind.h"
#include "core/confine/confine_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int f_abi(lua_State *L)
{
    lua_pushinteger(L, confine_abi());
    return 1;
}

static int f_filters(lua_State *L)
{
    lua_pushboolean(L, confine_calls_known());
    return 1;
}

static int f_real_path(lua_State *L)
{
    struct error error = {0};
    const char *path = bind_check_path(L, 1, &error);
    struct buffer *owner = bind_new_buffer(L);
    if (path && !(owner->data = realpath(path, NULL)))
        error_system(&error, errno, "cannot find %s", path);
    return bind_push_owned(L, owner, &error);
}

static int f_may_write(lua_State *L)
{
    lua_pushboolean(L, faccessat(AT_FDCWD, luaL_checkstring(L, 1), W_OK, AT_EACCESS) == 0);
    return 1;
}

static int f_set_rules(lua_State *L)
{
    struct error error = {0};
    const char **writable = bind_check_strings(L, 1, "writable");
    const char **hidden = bind_check_strings(L, 2, "hidden");
    return bind_outcome(L, confine_set_rules(writable, hidden, &error), &error);
}

const luaL_Reg bind_confine[] = {{"abi", f_abi},
                                 {"filters", f_filters},
                                 {"real_path", f_real_path},
                                 {"may_write", f_may_write},
                                 {"set_rules", f_set_rules},
                                 {NULL, NULL}};
