// SPDX-License-Identifier: Apache-2.0
// Bytes as text: UTF-8, base64, SHA-256. Texts are bytes with a size, never C strings.
//
// Functions that return int return 0, or -1 if memory is out; text_base64_decode as in error.h.
#ifndef SBA_CORE_TEXT_H
#define SBA_CORE_TEXT_H

#include "core/base/buffer.h"
#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { TEXT_SHA256_HEX = 65 }; // 64 hex digits and the NUL

// How many bytes at the start are ASCII and stand for themselves in a string of JSON: no control characters, quotes or
// backslashes.
size_t text_plain_span(const char *bytes, size_t size);

// Whether the bytes are well-formed UTF-8 (no surrogates, no overlong forms, nothing above U+10FFFF).
bool text_is_utf8(const char *bytes, size_t size);

// The length of the sequence that a lead byte begins (0: not a lead byte), and the range of its second byte (Unicode
// 15, table 3-7).
static inline size_t text_sequence_length(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    *high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2 || lead > 0xF4)
        return 0;
    return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

// Size of the byte order mark with which bytes begin; 0: they have none.
static inline size_t text_mark(const char *bytes, size_t size)
{
    enum { MARK = 3 };
    return size >= MARK && memcmp(bytes, "\xEF\xBB\xBF", MARK) == 0 ? MARK : 0;
}

// Appends the bytes as UTF-8: each maximal ill-formed subpart becomes one U+FFFD. NULs stay.
int text_repair(const char *bytes, size_t size, struct buffer *out);
int text_repair_all(struct buffer *text); // in place

// Size of the longest prefix of at most limit bytes that does not split a character.
size_t text_cut(const char *utf8, size_t size, size_t limit);

// Size of the longest suffix of at most limit bytes that does not split a character.
size_t text_tail(const char *utf8, size_t size, size_t limit);

// Size of the rest of a character with which cut bytes begin.
size_t text_half(const char *bytes, size_t size);

// Size of the bytes without an incomplete character at their end.
size_t text_whole(const char *bytes, size_t size);

// The first line end of the bytes, or their end.
static inline const char *text_line_end(const char *bytes, const char *end)
{
    const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
    return newline ? newline : end;
}

size_t text_count_newlines(const char *bytes, size_t size);

// Characters of a UTF-8 text.
size_t text_count_characters(const char *utf8, size_t size);

// Appends a text as it stands within the quotes of a JSON string.
int text_json_append(const char *utf8, size_t size, struct buffer *out);

// Writes RFC 4648 base64 with padding, (size + 2) / 3 * 4 bytes of it, and a NUL. Returns their number. size: at most
// INT_MAX / 2.
size_t text_base64_write(const char *bytes, size_t size, char *out);

// Appends the same.
int text_base64_encode(const char *bytes, size_t size, struct buffer *out);

// Appends the bytes of strict base64: padding is required, unused bits must be zero. Errors: invalid, out_of_memory.
int text_base64_decode(const char *base64, size_t size, struct buffer *out, struct error *error);

// SHA-256 in pieces: init, update any number of times, final once.
struct text_sha256 {
    _Alignas(8) unsigned char state[112];
};

void text_sha256_init(struct text_sha256 *sha256);
void text_sha256_update(struct text_sha256 *sha256, const void *bytes, size_t size);
// Writes lower-case hex and a NUL.
void text_sha256_final(struct text_sha256 *sha256, char hex[TEXT_SHA256_HEX]);

#endif
