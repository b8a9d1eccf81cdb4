// SPDX-License-Identifier: Apache-2.0
// native.text: bytes as UTF-8, base64, digests; tokens that a text costs.
#include "core/text/text.h"

#include "bind/bind.h"
#include "core/text/tokens.h"

#include <string.h>

static int f_repair(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    bool changed = !text_is_utf8(bytes, size);
    if (changed) {
        struct buffer *out = bind_new_buffer(L);
        if (text_repair(bytes, size, out) < 0)
            return luaL_error(L, "not enough memory");
        bind_push_bytes(L, out);
    } else {
        lua_pushvalue(L, 1);
    }
    lua_pushboolean(L, changed);
    return 2;
}

static int f_is_utf8(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    lua_pushboolean(L, text_is_utf8(bytes, size));
    return 1;
}

static int f_count_lines(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    bool is_open = size > 0 && bytes[size - 1] != '\n';
    lua_pushinteger(L, (lua_Integer)text_count_newlines(bytes, size) + is_open);
    return 1;
}

static int f_distance(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    lua_Integer from = luaL_checkinteger(L, 2), to = luaL_checkinteger(L, 3);
    luaL_argcheck(L, from >= 0 && from <= to && (size_t)to <= size, 3, "must be within the text");
    const char *part = bytes + from, *newline = memrchr(part, '\n', (size_t)(to - from));
    const char *start = newline ? newline + 1 : part;
    lua_pushinteger(L, (lua_Integer)text_count_newlines(part, (size_t)(to - from)));
    lua_pushinteger(L, (lua_Integer)text_count_characters(start, (size_t)(bytes + to - start)));
    return 2;
}

// Pushes a part of the string at index 1; the string itself if the part is all of it.
static int push_part(lua_State *L, const char *part, size_t kept, size_t size)
{
    if (kept == size)
        lua_pushvalue(L, 1);
    else
        lua_pushlstring(L, part, kept);
    return 1;
}

static int f_cut(lua_State *L)
{
    size_t size;
    const char *utf8 = luaL_checklstring(L, 1, &size);
    return push_part(L, utf8, text_cut(utf8, size, bind_check_size(L, 2)), size);
}

static int f_tail(lua_State *L)
{
    size_t size;
    const char *utf8 = luaL_checklstring(L, 1, &size);
    size_t kept = text_tail(utf8, size, bind_check_size(L, 2));
    return push_part(L, utf8 + size - kept, kept, size);
}

static const char blanks[] = " \t\n\v\f\r";

// Pushes the bytes without the characters of the set at their end.
static void push_trimmed(lua_State *L, const char *bytes, size_t size, const char *set)
{
    while (size > 0 && bytes[size - 1] && strchr(set, bytes[size - 1]))
        size--;
    lua_pushlstring(L, bytes, size);
}

static int f_trim(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    size_t leading = strspn(bytes, blanks);
    push_trimmed(L, bytes + leading, size - leading, blanks);
    return 1;
}

static int f_trim_end(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    push_trimmed(L, bytes, size, luaL_optstring(L, 2, blanks));
    return 1;
}

static int f_find(lua_State *L)
{
    size_t size, part_size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    const char *part = luaL_checklstring(L, 2, &part_size);
    lua_Integer from = luaL_checkinteger(L, 3);
    luaL_argcheck(L, from >= 1, 3, "must be positive");
    size_t skipped = (lua_Unsigned)from - 1 < size ? (size_t)from - 1 : size;
    const char *found = memmem(bytes + skipped, size - skipped, part, part_size);
    if (!found)
        return 0;
    lua_pushinteger(L, found - bytes + 1);
    return 1;
}

static int f_sha256(lua_State *L)
{
    size_t size;
    char hex[TEXT_SHA256_HEX];
    struct text_sha256 sha256;
    const char *bytes = luaL_checklstring(L, 1, &size);
    text_sha256_init(&sha256);
    text_sha256_update(&sha256, bytes, size);
    text_sha256_final(&sha256, hex);
    lua_pushstring(L, hex);
    return 1;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15;
    return hash ^ hash >> 32;
}

// 64 bits of a value that JSON can hold, which its next version has only by a rare chance, or on purpose. The members
// of an object are added up, and so have no order.
static uint64_t fingerprint(lua_State *L, int index)
{
    size_t size;
    uint64_t hash = (uint64_t)lua_type(L, index), word = 0;
    luaL_checkstack(L, 4, NULL);
    if (!lua_istable(L, index)) {
        const char *bytes = luaL_tolstring(L, index, &size);
        for (hash += size; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
            memcpy(&word, bytes, sizeof word);
            hash = mix(hash, word);
        }
        memcpy(&word, bytes, size);
        lua_pop(L, 1);
        return mix(hash, word);
    }
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        int value = lua_gettop(L);
        hash += mix(fingerprint(L, value - 1), fingerprint(L, value));
    }
    return hash;
}

static int f_fingerprint(lua_State *L)
{
    const uint64_t hash = fingerprint(L, 1);
    lua_pushlstring(L, (const char *)&hash, sizeof hash);
    return 1;
}

static int f_base64_encode(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    struct buffer *out = bind_new_buffer(L);
    if (text_base64_encode(bytes, size, out) < 0)
        return luaL_error(L, "not enough memory");
    bind_push_bytes(L, out);
    return 1;
}

static int f_base64_decode(lua_State *L)
{
    size_t size;
    const char *base64 = luaL_checklstring(L, 1, &size);
    struct buffer *out = bind_new_buffer(L);
    struct error error = {0};
    if (text_base64_decode(base64, size, out, &error) < 0)
        return bind_fail(L, &error);
    bind_push_bytes(L, out);
    return 1;
}

static int f_tokens(lua_State *L)
{
    size_t size;
    const char *utf8 = luaL_checklstring(L, 1, &size);
    lua_pushinteger(L, (lua_Integer)tokens_estimate(utf8, size));
    return 1;
}

const luaL_Reg bind_text[] = {
    {"repair", f_repair},
    {"is_utf8", f_is_utf8},
    {"count_lines", f_count_lines},
    {"distance", f_distance},
    {"cut", f_cut},
    {"tail", f_tail},
    {"trim", f_trim},
    {"trim_end", f_trim_end},
    {"find", f_find},
    {"sha256", f_sha256},
    {"fingerprint", f_fingerprint},
    {"base64_encode", f_base64_encode},
    {"base64_decode", f_base64_decode},
    {"tokens", f_tokens},
    {NULL, NULL},
};
