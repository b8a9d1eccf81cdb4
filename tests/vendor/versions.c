// SPDX-License-Identifier: Apache-2.0
// Asks each library in the prefix of vendor/build who it is, and prints it in the form of its file versions.
#include <ares.h>
#include <curl/curl.h>
#include <curses.h>
#include <histedit.h>
#include <lauxlib.h>
#include <lua.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

int luaopen_cjson(lua_State *L);
int luaopen_lpeg(lua_State *L);
extern const char lua_ident[];      // "$LuaVersion: Lua 5.4.4  Copyright ..."
extern const char __libc_version[]; // musl's own

int main(void)
{
    lua_State *L = luaL_newstate();
    char pcre2[64];
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);

    printf("musl %s\n", __libc_version);
    printf("%.9s\n", lua_ident + sizeof "$LuaVersion:");
    luaL_requiref(L, "cjson", luaopen_cjson, 0);
    lua_getfield(L, -1, "_VERSION");
    printf("lua-cjson %s\n", lua_tostring(L, -1));
    luaL_requiref(L, "lpeg", luaopen_lpeg, 0);
    lua_getfield(L, -1, "version");
    lua_call(L, 0, 1);
    printf("LPeg %s\n", lua_tostring(L, -1));
    printf("OpenSSL %s\n", OpenSSL_version(OPENSSL_VERSION_STRING));
    printf("c-ares %s\n", ares_version(NULL));
    printf("libcurl %s\n", curl_version_info(CURLVERSION_NOW)->version);
    printf("PCRE2 %.*s\n", (int)strcspn(pcre2, " "), pcre2);
    printf("%.11s\n", curses_version());    // "ncurses 6.4.20221231"
    if (el_init("", stdin, stdout, stderr)) // which cannot be asked: the version is that of the source it was made from
        printf("libedit 3.1\n");
    lua_close(L);
    return 0;
}
