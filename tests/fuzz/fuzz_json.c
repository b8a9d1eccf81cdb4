// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: strict JSON. util/json.lua and the small checker below must agree on what is JSON, and what was
// read must be written and read again the same.
#include "bind/bind.h"
#include "bundle.h"
#include "core/text.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

// read(bytes) -> "accepted" | "twice" (a member name) | "refused"
static const char driver[] =
    "local json = require 'sba.util.json'\n"
    "return function(bytes)\n"
    "  local value, failure = json.decode(bytes)\n"
    "  if failure then\n"
    "    assert(value == nil and failure.offset <= #bytes and failure.line >= 1 and failure.column >= 1, "
    "failure.message)\n"
    "    assert(not failure.message:find '%c' and #failure.message < 2000 + #bytes and utf8.len(failure.message))\n"
    "    if not failure.message:find('is there twice', 1, true) then return 'refused' end\n"
    "    local _, before = json.decode(bytes:sub(1, failure.offset))\n"
    "    assert(before.message:find('expected a member name in double quotes, found the end of the text', 1, true))\n"
    "    return 'twice'\n"
    "  end\n"
    "  local written = json.encode(value)\n"
    "  local again, mistake = json.decode(written)\n"
    "  assert(not mistake, mistake and mistake.message)\n"
    "  assert(json.encode(again) == written)\n"
    "  return 'accepted'\n"
    "end\n";

// The text from the place at hand on.
struct cursor {
    const unsigned char *at, *end;
};

static int peek(const struct cursor *cursor)
{
    return cursor->at < cursor->end ? *cursor->at : -1;
}

static bool take(struct cursor *cursor, int byte)
{
    if (peek(cursor) != byte)
        return false;
    cursor->at++;
    return true;
}

static void skip_space(struct cursor *cursor)
{
    while (peek(cursor) == ' ' || peek(cursor) == '\t' || peek(cursor) == '\n' || peek(cursor) == '\r')
        cursor->at++;
}

static bool take_digits(struct cursor *cursor)
{
    const unsigned char *first = cursor->at;
    while (peek(cursor) >= '0' && peek(cursor) <= '9')
        cursor->at++;
    return cursor->at > first;
}

static bool is_finite_number(const unsigned char *first, const unsigned char *end)
{
    char *text = strndup((const char *)first, (size_t)(end - first));
    bool finite = isfinite(strtod(text, NULL));
    free(text);
    return finite;
}

static bool check_number(struct cursor *cursor)
{
    const unsigned char *first = cursor->at;
    take(cursor, '-');
    if (!take(cursor, '0') && !take_digits(cursor))
        return false;
    if (take(cursor, '.') && !take_digits(cursor))
        return false;
    if (take(cursor, 'e') || take(cursor, 'E')) {
        if (!take(cursor, '+'))
            take(cursor, '-');
        if (!take_digits(cursor))
            return false;
    }
    return is_finite_number(first, cursor->at);
}

static int take_hex4(struct cursor *cursor)
{
    char digits[5] = {0}, *end;
    for (int i = 0; i < 4; i++, cursor->at++) {
        if (peek(cursor) < 0 || !strchr("0123456789abcdefABCDEF", peek(cursor)) || !peek(cursor))
            return -1;
        digits[i] = (char)peek(cursor);
    }
    return (int)strtol(digits, &end, 16);
}

static bool check_escape(struct cursor *cursor)
{
    if (!take(cursor, 'u')) {
        bool known = peek(cursor) > 0 && strchr("\"\\/bfnrt", peek(cursor));
        cursor->at += known;
        return known;
    }
    int unit = take_hex4(cursor);
    if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF))
        return false;
    if (unit < 0xD800 || unit > 0xDFFF)
        return true;
    if (!take(cursor, '\\') || !take(cursor, 'u'))
        return false;
    unit = take_hex4(cursor);
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

static bool check_string(struct cursor *cursor)
{
    if (!take(cursor, '"'))
        return false;
    while (!take(cursor, '"')) {
        if (peek(cursor) < 0x20)
            return false;
        if (*cursor->at++ == '\\' && !check_escape(cursor))
            return false;
    }
    return true;
}

static bool check_word(struct cursor *cursor, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

static bool check_plain(struct cursor *cursor)
{
    switch (peek(cursor)) {
    case '"':
        return check_string(cursor);
    case 't':
        return check_word(cursor, "true");
    case 'f':
        return check_word(cursor, "false");
    case 'n':
        return check_word(cursor, "null");
    default:
        return check_number(cursor);
    }
}

static bool check_name(struct cursor *cursor)
{
    skip_space(cursor);
    if (!check_string(cursor))
        return false;
    skip_space(cursor);
    return take(cursor, ':');
}

// After a value: closes what ends here. True where a further value must follow (*done false) or the text is over.
static bool check_after(struct cursor *cursor, char *open, int *depth, bool *done)
{
    for (skip_space(cursor); *depth > 0; skip_space(cursor)) {
        char bracket = open[*depth - 1];
        if (take(cursor, ','))
            return bracket == '[' || check_name(cursor);
        if (!take(cursor, bracket == '[' ? ']' : '}'))
            return false;
        (*depth)--;
    }
    *done = true;
    return cursor->at == cursor->end;
}

static bool check_json(const char *bytes, size_t size)
{
    struct cursor cursor = {(const unsigned char *)bytes, (const unsigned char *)bytes + size};
    char open[MAX_DEPTH];
    int depth = 0;
    if (!text_is_utf8(bytes, size))
        return false;
    for (bool done = false; !done;) {
        skip_space(&cursor);
        int bracket = peek(&cursor);
        if (bracket == '[' || bracket == '{') {
            cursor.at++;
            if (depth == MAX_DEPTH)
                return false;
            open[depth++] = (char)bracket;
            skip_space(&cursor);
            bool empty = take(&cursor, bracket == '[' ? ']' : '}');
            depth -= empty;
            if (!empty && (bracket == '[' || check_name(&cursor)))
                continue;
            if (!empty)
                return false;
        } else if (!check_plain(&cursor)) {
            return false;
        }
        if (!check_after(&cursor, open, &depth, &done))
            return false;
    }
    return true;
}

static lua_State *open_lua(void)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    bind_open_all(L);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "searchers");
    lua_pushcfunction(L, bundle_searcher);
    lua_rawseti(L, -2, 2);
    lua_settop(L, 0);
    if (luaL_dostring(L, driver)) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        abort();
    }
    return L;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    if (!L)
        L = open_lua();
    const char *bytes = (const char *)data;
    lua_pushvalue(L, 1);
    lua_pushlstring(L, bytes, size);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        abort();
    }
    const char *verdict = lua_tostring(L, -1);
    // A name that is there twice is no matter of grammar, and what comes after it was not looked at.
    if (strcmp(verdict, "twice") != 0 && (strcmp(verdict, "accepted") == 0) != check_json(bytes, size)) {
        fprintf(stderr, "util/json.lua says %s, the checker does not\n", verdict);
        abort();
    }
    lua_settop(L, 1);
    return 0;
}
