// SPDX-License-Identifier: Apache-2.0
// Stops runaway Lua when a cancel comes or the deadline is reached, and costs nothing until then.
#ifndef SBA_STOP_H
#define SBA_STOP_H

#include <lua.h>

// From here on Lua of this state, its coroutines included, is stopped by an error {code = "timeout"|"cancelled",
// message =}. After luaL_openlibs, once.
void stop_watch(lua_State *L);

#endif
