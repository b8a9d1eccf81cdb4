// SPDX-License-Identifier: Apache-2.0
// native.json.decode: JSON text (RFC 8259) to Lua values, in one pass.
//
// The text is a Lua string of UTF-8, so a NUL stands after its end: a character that is not the one wanted may be that,
// and nothing here need ask how much is left. A function that gives false has pushed what is wrong; its true ones push
// the value that they read.
#include "core/json.h"

#include "bind/bind.h"

#include <math.h>
#include <string.h>

enum { DEEPEST = 200, STACK_PER_LEVEL = 6, DIGITS_OF_ANY_INTEGER = 18, SHOWN_DIGITS = 40 };

struct decoder {
    lua_State *L;
    const char *text, *at, *end;
    struct buffer *unescaped;
    int array_metatable; // where it is on the stack
    int depth, max_depth;
};

// Pushes {offset =, [name] = the text on top of the stack, which is popped}.
static bool refuse(struct decoder *decoder, const char *at, const char *name)
{
    lua_State *L = decoder->L;
    lua_createtable(L, 0, 3);
    lua_insert(L, -2);
    lua_setfield(L, -2, name);
    lua_pushinteger(L, at - decoder->text);
    lua_setfield(L, -2, "offset");
    return false;
}

static bool expected(struct decoder *decoder, const char *what)
{
    lua_pushstring(decoder->L, what);
    return refuse(decoder, decoder->at, "expected");
}

static void skip_space(struct decoder *decoder)
{
    while (*decoder->at == ' ' || *decoder->at == '\n' || *decoder->at == '\r' || *decoder->at == '\t')
        decoder->at++;
}

static bool take(struct decoder *decoder, char byte)
{
    if (*decoder->at != byte)
        return false;
    decoder->at++;
    return true;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static const char *skip_digits(const char *at)
{
    while (is_digit(*at))
        at++;
    return at;
}

// The end of the number that begins here, or its beginning where there is none.
static const char *end_of_number(const char *begin)
{
    const char *end = begin + (*begin == '-');
    if (!is_digit(*end))
        return begin;
    end = *end == '0' ? end + 1 : skip_digits(end);
    if (*end == '.' && is_digit(end[1]))
        end = skip_digits(end + 1);
    if (*end == 'e' || *end == 'E') {
        const char *digits = end + 1 + (end[1] == '+' || end[1] == '-');
        if (is_digit(*digits))
            end = skip_digits(digits);
    }
    return end;
}

static void push_small_integer(lua_State *L, const char *begin, const char *end)
{
    lua_Integer value = 0;
    for (const char *at = begin + (*begin == '-'); at < end; at++)
        value = value * 10 + (*at - '0');
    lua_pushinteger(L, *begin == '-' ? -value : value);
}

static bool decode_number(struct decoder *decoder)
{
    lua_State *L = decoder->L;
    const char *begin = decoder->at, *end = end_of_number(begin);
    if (end == begin)
        return expected(decoder, "a value");
    decoder->at = end;
    if (end - begin <= DIGITS_OF_ANY_INTEGER && skip_digits(begin + (*begin == '-')) == end) {
        push_small_integer(L, begin, end);
        return true;
    }
    lua_stringtonumber(L, lua_pushlstring(L, begin, (size_t)(end - begin)));
    lua_remove(L, -2);
    if (isfinite(lua_tonumber(L, -1)))
        return true;
    lua_pop(L, 1);
    lua_pushlstring(L, begin, (size_t)(end - begin < SHOWN_DIGITS ? end - begin : SHOWN_DIGITS));
    lua_pushfstring(L, "the number %s is too large", lua_tostring(L, -1));
    lua_remove(L, -2);
    return refuse(decoder, begin, "message");
}

// Pushes what the inside of a string with escapes stands for.
static bool unescape(struct decoder *decoder, const char *begin, const char *end)
{
    bool out_of_memory;
    struct buffer *out = decoder->unescaped;
    out->size = 0;
    size_t size = (size_t)(end - begin), used = json_unescape(begin, size, out, &out_of_memory);
    if (out_of_memory)
        luaL_error(decoder->L, "cannot read JSON: not enough memory");
    if (used < size) {
        lua_pushliteral(decoder->L, "\\u wants four hex digits, and surrogates only in pairs");
        return refuse(decoder, begin + used, "message");
    }
    lua_pushlstring(decoder->L, out->data, out->size);
    return true;
}

// Reads a string from after its first quote on.
static bool decode_string(struct decoder *decoder)
{
    const char *begin = decoder->at;
    bool has_escapes = false;
    for (;;) {
        decoder->at += json_plain_span(decoder->at, (size_t)(decoder->end - decoder->at));
        if (*decoder->at != '\\')
            break;
        if (!decoder->at[1] || !strchr("\"\\/bfnrtu", decoder->at[1]))
            break;
        decoder->at += 2;
        has_escapes = true;
    }
    const char *end = decoder->at;
    if (!take(decoder, '"'))
        return expected(decoder, "a character, an escape or the closing \"");
    if (has_escapes)
        return unescape(decoder, begin, end);
    lua_pushlstring(decoder->L, begin, (size_t)(end - begin));
    return true;
}

static bool decode_value(struct decoder *decoder);

// Refuses the member name on top of the stack.
static bool refuse_second(struct decoder *decoder, const char *at)
{
    size_t size;
    const char *name = lua_tolstring(decoder->L, -1, &size);
    decoder->unescaped->size = 0;
    if (json_quote(name, size, decoder->unescaped) < 0)
        luaL_error(decoder->L, "cannot read JSON: not enough memory");
    lua_pushliteral(decoder->L, "the member name ");
    lua_pushlstring(decoder->L, decoder->unescaped->data, decoder->unescaped->size);
    lua_pushliteral(decoder->L, " is there twice");
    lua_concat(decoder->L, 3);
    return refuse(decoder, at, "message");
}

// Reads "name": value into the object at the index.
static bool decode_member(struct decoder *decoder, int object)
{
    lua_State *L = decoder->L;
    const char *begin = decoder->at;
    if (!take(decoder, '"'))
        return expected(decoder, "a member name in double quotes");
    if (!decode_string(decoder))
        return false;
    lua_pushvalue(L, -1);
    bool is_second = lua_rawget(L, object) != LUA_TNIL;
    lua_pop(L, 1);
    if (is_second)
        return refuse_second(decoder, begin);
    skip_space(decoder);
    if (!take(decoder, ':'))
        return expected(decoder, "':'");
    skip_space(decoder);
    if (!decode_value(decoder))
        return false;
    lua_rawset(L, object);
    return true;
}

static bool decode_object(struct decoder *decoder)
{
    lua_newtable(decoder->L);
    int object = lua_gettop(decoder->L);
    if (take(decoder, '}'))
        return true;
    for (;;) {
        if (!decode_member(decoder, object))
            return false;
        if (take(decoder, '}'))
            return true;
        if (!take(decoder, ','))
            return expected(decoder, "',' or '}'");
        skip_space(decoder);
    }
}

static bool decode_array(struct decoder *decoder)
{
    lua_newtable(decoder->L);
    int array = lua_gettop(decoder->L);
    lua_pushvalue(decoder->L, decoder->array_metatable);
    lua_setmetatable(decoder->L, array);
    if (take(decoder, ']'))
        return true;
    for (lua_Integer i = 1;; i++) {
        if (!decode_value(decoder))
            return false;
        lua_rawseti(decoder->L, array, i);
        if (take(decoder, ']'))
            return true;
        if (!take(decoder, ','))
            return expected(decoder, "',' or ']'");
        skip_space(decoder);
    }
}

// Reads an object or array from after its bracket on.
static bool decode_nested(struct decoder *decoder, bool (*decode)(struct decoder *decoder))
{
    luaL_checkstack(decoder->L, STACK_PER_LEVEL, "cannot read JSON");
    if (++decoder->depth > decoder->max_depth) {
        lua_pushfstring(decoder->L, "nested deeper than %d levels", decoder->max_depth);
        refuse(decoder, decoder->at - 1, "message");
        lua_pushliteral(decoder->L, "too_deep");
        lua_setfield(decoder->L, -2, "code");
        return false;
    }
    skip_space(decoder);
    bool decoded = decode(decoder);
    decoder->depth--;
    return decoded;
}

static bool take_word(struct decoder *decoder, const char *word)
{
    size_t size = strlen(word);
    if (strncmp(decoder->at, word, size) != 0)
        return false;
    decoder->at += size;
    return true;
}

static bool decode_scalar(struct decoder *decoder)
{
    if (take_word(decoder, "true"))
        lua_pushboolean(decoder->L, 1);
    else if (take_word(decoder, "false"))
        lua_pushboolean(decoder->L, 0);
    else if (take_word(decoder, "null"))
        lua_pushlightuserdata(decoder->L, NULL);
    else
        return decode_number(decoder);
    return true;
}

// Reads a value and the space after it.
static bool decode_value(struct decoder *decoder)
{
    bool decoded;
    if (take(decoder, '"'))
        decoded = decode_string(decoder);
    else if (take(decoder, '{'))
        decoded = decode_nested(decoder, decode_object);
    else if (take(decoder, '['))
        decoded = decode_nested(decoder, decode_array);
    else
        decoded = decode_scalar(decoder);
    skip_space(decoder);
    return decoded;
}

static bool decode_text(struct decoder *decoder)
{
    skip_space(decoder);
    if (!decode_value(decoder))
        return false;
    return decoder->at == decoder->end || expected(decoder, "the end of the text");
}

int bind_json_decode(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    lua_Integer max_depth = luaL_checkinteger(L, 2);
    luaL_argcheck(L, max_depth >= 0 && max_depth <= DEEPEST, 2, "must be 0 to 200");
    lua_settop(L, 1);
    bind_push_array_metatable(L);
    struct decoder decoder = {
        .L = L,
        .text = text,
        .at = text,
        .end = text + size,
        .array_metatable = 2,
        .max_depth = (int)max_depth,
        .unescaped = bind_new_buffer(L),
    };
    bool decoded = decode_text(&decoder);
    buffer_free(decoder.unescaped);
    if (decoded)
        return 1;
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}
