// SPDX-License-Identifier: Apache-2.0
// The sealed Lua state.
#ifndef SBA_HOST_H
#define SBA_HOST_H

// Runs sba.main with the arguments in a fresh state: no LUA_PATH, no LUA_INIT, modules from the bundle only.
// Returns the exit status of the program, or -1 if Lua itself failed, with a message on stderr.
int host_run(int argc, char **argv);

#endif
