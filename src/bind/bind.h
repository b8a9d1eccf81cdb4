// SPDX-License-Identifier: Apache-2.0
// What the bindings share. A binding has three phases: check every argument, call core, push the result.
// lua/types/native.lua says what each native function takes and returns.
//
// Every native function raises an error for misuse (a bug of the caller), and returns nil, {code=, message=} for
// failures of the world. A userdata owns what is held while Lua can raise.
#ifndef SBA_BIND_BIND_H
#define SBA_BIND_BIND_H

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

// Puts every native.* module into package.preload.
void bind_open_all(lua_State *L);

// The native.* modules, in the files of the same names: those that are functions only, and those with types.
extern const luaL_Reg bind_confine[], bind_ending[], bind_identity[], bind_interrupt[];
extern const luaL_Reg bind_line_editor[], bind_process[], bind_text[];
int luaopen_native_file(lua_State *L);
int luaopen_native_http(lua_State *L);
int luaopen_native_edit(lua_State *L);
int luaopen_native_search(lua_State *L);
int luaopen_native_secret(lua_State *L);
int luaopen_native_workspace(lua_State *L);

// Seconds as milliseconds. They are not negative, or the argument at index is wrong. Any number of them works: more
// than 30,000 years are that many, so that the sum with a clock is no overflow.
int64_t bind_milliseconds(lua_State *L, int index, lua_Number seconds);

// Seconds at index, as milliseconds. A size or an offset at index: not negative.
int64_t bind_check_seconds(lua_State *L, int index);
size_t bind_check_size(lua_State *L, int index);

// Makes the metatable of a handle, unless it is there: its methods (NULL: none), and close as its __gc and __close.
void bind_new_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction close);

// Pushes a handle of that type, of so many bytes, all zero, with so many user values.
void *bind_new_handle(lua_State *L, const char *type, size_t size, int values);

// Sets a field of the table on top of the stack; no field if the string is NULL.
void bind_set_integer(lua_State *L, const char *name, lua_Integer value);
void bind_set_string(lua_State *L, const char *name, const char *value);
void bind_set_boolean(lua_State *L, const char *name, bool value);

// Pushes nil and a failure made of *error, clears *error, returns 2.
int bind_fail(lua_State *L, struct error *error);

// Pushes true, or fails as bind_fail does if the outcome is negative.
int bind_outcome(lua_State *L, int outcome, struct error *error);

// Pushes the failure table of an interrupt: code "timeout" or "cancelled".
void bind_push_interrupt(lua_State *L, enum interrupt_reason reason);

// Pushes the string that *owner holds, or fails as bind_fail does if it holds none.
int bind_push_owned(lua_State *L, const struct buffer *owner, struct error *error);

// Pushes the bytes of the buffer, and empties it.
void bind_push_bytes(lua_State *L, struct buffer *buffer);

// Calls a tick, which is on the stack below its arguments. False: it failed, and its error is on the stack. An error
// does not count if the job must stop: most likely it comes from the hook of host.c, and the wait ends anyway.
bool bind_call_tick(lua_State *L, int arguments);

// Pushes an empty buffer that Lua owns: freed when it is collected, closed or emptied with buffer_free.
struct buffer *bind_new_buffer(lua_State *L);

// Pushes the shared buffer, empty, for use until the function returns: new memory for each call would cost more than
// most calls. Do not use it across a call that may use it too.
struct buffer *bind_push_shared_buffer(lua_State *L);

// Empties it, and frees it if it is large.
void bind_empty_shared_buffer(struct buffer *buffer);

// Path at index as a C string, or NULL and *error filled ("invalid": it holds a NUL). No string raises an error.
const char *bind_check_path(lua_State *L, int index, struct error *error);

// Raises an error unless the value at index is nil, absent or a table whose keys are all among names (NULL-terminated).
void bind_check_options(lua_State *L, int index, const char *const names[]);

// Pushes a copy of the list of strings at index, which `what` names in errors, and above it an array of the same
// strings with NULL at its end. A list that holds anything else, or a string with a NUL byte, raises an error.
const char **bind_check_strings(lua_State *L, int index, const char *what);

// Options of the table at index (nil counts as an empty table). The wrong type raises an error that names the option.
lua_Integer bind_option_integer(lua_State *L, int index, const char *name, lua_Integer otherwise, lua_Integer minimum);
lua_Number bind_option_number(lua_State *L, int index, const char *name, lua_Number otherwise);
bool bind_option_boolean(lua_State *L, int index, const char *name, bool otherwise);
// NULL if absent. The string is valid as long as the table holds it.
const char *bind_option_string(lua_State *L, int index, const char *name, size_t *size);

#endif
