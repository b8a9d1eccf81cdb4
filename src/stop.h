// SPDX-License-Identifier: Apache-2.0
// Stops runaway Lua when a cancel comes or the deadline is reached, and costs nothing until then.
#ifndef SBA_STOP_H
#define SBA_STOP_H

#include <lua.h>

// From now on, an error {code = "timeout"|"cancelled", message =} stops Lua code in this state, but not in
// its coroutines. Call it once.
void stop_watch(lua_State *L);

#endif
