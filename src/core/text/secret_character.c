// SPDX-License-Identifier: Apache-2.0
// Decodes characters, see secret_character.h.
#include "core/text/secret_character.h"

#include <string.h>

const char escape_mark[ESCAPES] = {[PERCENT] = '%', [JSON] = '\\'};

long character_hex(const char *digits, size_t count)
{
    long value = 0;
    for (size_t i = 0; i < count; i++) {
        const char *all = "0123456789abcdef0123456789ABCDEF", *digit = digits[i] ? strchr(all, digits[i]) : NULL;
        if (!digit)
            return -1;
        value = value << 4 | ((digit - all) & 15);
    }
    return value;
}

static void set_code_point(struct character *character, long code)
{
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    character->size = size;
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        character->bytes[i] = (unsigned char)(0x80 | (code & 0x3F));
    character->bytes[0] = (unsigned char)(size == 1 ? code : leads[size] | code);
}

// Decodes \uXXXX, or a pair of surrogates.
static void decode_unicode(const char *text, size_t left, struct character *character)
{
    character->torn = left < 6;
    long code = character->torn ? -1 : character_hex(text + 2, 4);
    if (code < 0)
        return;
    character->length = 6;
    long low =
        code >> 10 == 0xD8 >> 2 && left >= 12 && text[6] == '\\' && text[7] == 'u' ? character_hex(text + 8, 4) : -1;
    if (low >> 10 == 0xDC >> 2) {
        character->length = 12;
        code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF);
    }
    set_code_point(character, code);
}

static void decode_json(const char *text, size_t left, struct character *character)
{
    static const char names[] = "bfnrt", controls[] = "\b\f\n\r\t";
    character->torn = left < 2;
    if (character->torn)
        return;
    if (text[1] == 'u') {
        decode_unicode(text, left, character);
        return;
    }
    const char *name = text[1] ? strchr(names, text[1]) : NULL;
    character->bytes[0] = (unsigned char)(name ? controls[name - names] : text[1]);
    character->length = 2;
}

static void decode_percent(const char *text, size_t left, struct character *character)
{
    character->torn = left < 3;
    if (character->torn || character_hex(text + 1, 2) < 0)
        return;
    character->bytes[0] = (unsigned char)character_hex(text + 1, 2);
    character->length = 3;
}

static bool wraps_base64(unsigned char byte)
{
    return byte == '\n' || byte == '\r' || byte == '\t' || byte == ' ';
}

void character_normalize_base64(struct character *character)
{
    unsigned char *byte = character->bytes;
    if (wraps_base64(*byte))
        character->size = 0;
    else if (*byte == '-')
        *byte = '+';
    else if (*byte == '_')
        *byte = '/';
}

struct character character_read(const char *text, size_t size, enum escape escape)
{
    struct character character = {.bytes = {(unsigned char)*text}, .size = 1, .length = 1};
    if (escape == PERCENT && *text == '%')
        decode_percent(text, size, &character);
    else if (escape == JSON && *text == '\\')
        decode_json(text, size, &character);
    return character;
}
