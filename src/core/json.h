// SPDX-License-Identifier: Apache-2.0
// JSON text (RFC 8259) of strings and numbers.
//
// Error contract: functions that return int give 0, or -1 when memory is out.
#ifndef SBA_CORE_JSON_H
#define SBA_CORE_JSON_H

#include "core/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Appends the bytes as a JSON string, quotes included. What is not UTF-8 becomes U+FFFD, as text_repair has it.
int json_quote(const char *bytes, size_t size, struct buffer *out);

// How many bytes at the start of the inside of a JSON string stand for themselves: those before the first quote,
// backslash or control character.
size_t json_plain_span(const char *bytes, size_t size);

// Appends what the inside of a JSON string (without its quotes) stands for. Returns size, or less where it stopped: at
// the backslash of a bad escape (surrogates must be in pairs), or where memory ran out (*out_of_memory is set then).
size_t json_unescape(const char *bytes, size_t size, struct buffer *out, bool *out_of_memory);

// An upper bound on how many values a JSON text holds: what opens or separates outside strings, and one.
size_t json_count(const char *bytes, size_t size);

// Appends all digits.
int json_integer(int64_t value, struct buffer *out);

// Appends the fewest digits that read back as value, which is finite. A whole number keeps its ".0" or exponent, so
// that it reads back as a float where that is told from an integer.
int json_float(double value, struct buffer *out);

#endif
