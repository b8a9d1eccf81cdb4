// SPDX-License-Identifier: Apache-2.0
// What one binding gives to others: handles, and bytes that are more than a string. A value of another type raises an
// error.
#ifndef SBA_BIND_BIND_HANDLES_H
#define SBA_BIND_BIND_HANDLES_H

#include "core/base/parts.h"
#include "core/text/text.h"

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

// The handle of native.workspace at index. What is no open handle raises an error. Open as long as the value is alive.
struct workspace *bind_check_root(lua_State *L, int index);

// An opened file or directory (O_PATH): native.opened.
struct bind_opened {
    int fd;                       // -1: closed
    uint64_t size;                // of a file, when it was opened
    char sha256[TEXT_SHA256_HEX]; // what it must be, or ""
};
const struct bind_opened *bind_check_opened(lua_State *L, int index);

// The bytes at index: a string, or what native.edit made of a large file.
const char *bind_check_content(lua_State *L, int index, size_t *size);

// native.file.log: makes the type, pushes a closed one, and gives the one at index. bind_test_log: NULL if it is none.
struct file_log;
void bind_new_log_type(lua_State *L);
struct file_log *bind_new_log(lua_State *L);
struct file_log *bind_check_log(lua_State *L, int index);
struct file_log *bind_test_log(lua_State *L, int index);

// Part i of the list, which keeps it alive: a string, or two integers, offset and size of a span of the log in its
// field `from`. Returns how many elements it has.
lua_Integer bind_check_part(lua_State *L, int list, lua_Integer i, struct part *part);

// The parts of the list at index, which keeps them alive, in memory that is pushed, with room for one more.
struct parts bind_push_parts(lua_State *L, int index);

// Methods of native.root that have a file of their own.
int bind_root_snapshot(lua_State *L);
int bind_root_walk(lua_State *L);

#endif
