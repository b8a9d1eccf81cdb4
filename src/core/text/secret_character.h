// SPDX-License-Identifier: Apache-2.0
// The characters of a text that may be percent-encoded or escaped as in a JSON string.
#ifndef SBA_CORE_SECRET_CHARACTER_H
#define SBA_CORE_SECRET_CHARACTER_H

#include <stdbool.h>
#include <stddef.h>

enum { LONGEST_UTF8 = 4 };

enum escape { AS_IS, PERCENT, JSON, ESCAPES };

// The byte that begins an escape.
extern const char escape_mark[ESCAPES];

// A character of the text, decoded.
struct character {
    unsigned char bytes[LONGEST_UTF8];
    size_t size;   // 0: it only wraps a line of base64
    size_t length; // in the text
    bool torn;     // it is the beginning of an escape, and the text ends
};

// Reads the first character of a text that has at least one byte. An escape that is malformed stands for itself.
struct character character_read(const char *text, size_t size, enum escape escape);

// Makes a byte of base64 one of the standard alphabet, and leaves out what only wraps lines.
void character_normalize_base64(struct character *character);

// The value of so many hex digits, or -1.
long character_hex(const char *digits, size_t count);

#endif
