// SPDX-License-Identifier: Apache-2.0
// The Lua modules inside the binary, and the searcher that finds them.
#ifndef SBA_BUNDLE_H
#define SBA_BUNDLE_H

#include <stddef.h>

struct lua_State;

struct bundled_module {
    const char *name;          // "sba.steps.read_file"
    const char *path;          // "sba/steps/read_file.lua", below lua/
    const unsigned char *code; // bytecode, with line numbers
    size_t size;
};

extern const struct bundled_module bundled_modules[]; // in byte order of name
extern const size_t bundled_module_count;
extern const char *const bundled_library_versions; // "Lua 5.4.4, lua-cjson 2.1.0, ..."

// A searcher for package.searchers: name -> loader, path; or a string that says why not.
int bundle_searcher(struct lua_State *L);

// Opens the module native.bundle.
int luaopen_native_bundle(struct lua_State *L);

#endif
