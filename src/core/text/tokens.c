// SPDX-License-Identifier: Apache-2.0
// Estimates tokens, see tokens.h. The numbers fit vocabularies of about 50,000 tokens in which each digit is a token.
#include "core/text/tokens.h"

#include <stdbool.h>

enum {
    LETTERS_A_TOKEN = 5,  // of a word; most words are one token, long ones and identifiers are more
    LEAST_DENSE = 16,     // bytes of a run that may be hexadecimal or base64
    LONG_DENSE = 40,      // bytes of a run that is longer than usual names and paths
    DIGITS_OF_DENSE = 12, // at least one of so many bytes in such a run is a digit; in a long one
    DIGITS_OF_LONG = 20,
};

static bool is_digit(unsigned char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_letter(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_of_base64(unsigned char byte)
{
    return is_letter(byte) || is_digit(byte) || byte == '+' || byte == '/' || byte == '=' || byte == '-' || byte == '_';
}

// Adds the run of letters and digits at the start of bytes. Returns its size.
static size_t add_run(const unsigned char *bytes, size_t size, struct tokens *sum)
{
    size_t end = 0, digits = 0;
    for (; end < size && is_of_base64(bytes[end]); end++)
        digits += is_digit(bytes[end]);
    size_t share = end >= LONG_DENSE ? DIGITS_OF_LONG : DIGITS_OF_DENSE;
    if (end >= LEAST_DENSE && digits * share >= end) {
        sum->dense += end - (end - digits) / 5;
        return end;
    }
    for (size_t i = 0; i < end;) {
        size_t begin = i;
        while (i < end && is_letter(bytes[i]))
            i++;
        if (i > begin)
            sum->words += 1 + (i - begin - 1) / LETTERS_A_TOKEN;
        else if (is_digit(bytes[i++]))
            sum->dense++;
        else
            sum->words++;
    }
    return end;
}

// Adds blanks. One before a word belongs to its token, one before a digit does not.
static size_t add_blanks(const unsigned char *bytes, size_t size, struct tokens *sum)
{
    size_t end = 1;
    while (end < size && bytes[end] == bytes[0])
        end++;
    if (bytes[0] != ' ' || end > 1)
        sum->words += 1 + end / 8;
    else if (size > 1 && is_digit(bytes[1]))
        sum->dense++;
    return end;
}

static bool is_mark(unsigned char byte)
{
    return byte > ' ' && byte < 0x7F && !is_letter(byte) && !is_digit(byte);
}

// Adds punctuation. Two marks are often one token; many equal ones are few tokens.
static size_t add_marks(const unsigned char *bytes, size_t size, struct tokens *sum)
{
    size_t end = 1;
    while (end < size && bytes[end] == bytes[0])
        end++;
    if (end == 1 && size > 1 && is_mark(bytes[1]))
        end = 2;
    sum->words += 1 + end / 8;
    return end;
}

// Adds a character that is not ASCII. Of those with two bytes, Greek and Cyrillic cost less than Latin, Hebrew and
// Arabic.
static size_t add_character(const unsigned char *bytes, size_t size, struct tokens *sum)
{
    size_t end = 1;
    while (end < size && end < 4 && (bytes[end] & 0xC0) == 0x80)
        end++;
    bool is_cheap = end == 1 || (bytes[0] >= 0xCE && bytes[0] <= 0xD3);
    sum->other += is_cheap ? 1 : end == 2 ? 2 : end - 1;
    return end;
}

struct tokens tokens_estimate(const char *utf8, size_t size)
{
    struct tokens sum = {0};
    const unsigned char *bytes = (const unsigned char *)utf8;
    for (size_t i = 0; i < size;) {
        unsigned char byte = bytes[i];
        if (is_letter(byte) || is_digit(byte))
            i += add_run(bytes + i, size - i, &sum);
        else if (byte >= 0x80)
            i += add_character(bytes + i, size - i, &sum);
        else if (byte == ' ' || byte == '\n' || byte == '\t')
            i += add_blanks(bytes + i, size - i, &sum);
        else if (is_mark(byte))
            i += add_marks(bytes + i, size - i, &sum);
        else
            sum.dense++, i++;
    }
    return sum;
}
