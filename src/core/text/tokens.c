// SPDX-License-Identifier: Apache-2.0
// Estimates tokens, see tokens.h. The numbers fit vocabularies of about 50,000 tokens in which each digit is a token.
#include "core/text/tokens.h"

#include <stdbool.h>

enum {
    LETTERS_A_TOKEN = 5,  // of a word; most words are one token, long ones and identifiers are more
    LEAST_DENSE = 16,     // bytes of a run that may be hexadecimal or base64
    LONG_DENSE = 40,      // bytes of a run that is longer than usual names and paths
    DIGITS_OF_DENSE = 12, // of so many bytes in such a run at least one is a digit; in a long one of so many:
    DIGITS_OF_LONG = 20,
};

enum kind { CONTROL = 'c', BLANK = '_', DIGIT = '0', LETTER = 'a', MARK = '.', OTHER = 'x' };

static enum kind kind_of(unsigned char byte)
{
    static const char of_ascii[] = "ccccccccc__ccccccccccccccccccccc"
                                   "_...............0000000000......"
                                   ".aaaaaaaaaaaaaaaaaaaaaaaaaa....."
                                   ".aaaaaaaaaaaaaaaaaaaaaaaaaa....c";
    return byte < 0x80 ? (enum kind)of_ascii[byte] : OTHER;
}

static bool is_of_base64(unsigned char mark)
{
    return mark == '+' || mark == '/' || mark == '=' || mark == '-' || mark == '_';
}

// Adds the run of letters and digits at the start of bytes. Returns its size, as the functions below do.
static size_t add_run(const unsigned char *bytes, size_t size, size_t *sum)
{
    size_t end = 0, digits = 0, others = 0, letters = 0; // digits; other tokens; letters of the last one
    for (; end < size; end++) {
        enum kind kind = kind_of(bytes[end]);
        if (kind == LETTER) {
            others += letters == 0;
            letters = letters + 1 < LETTERS_A_TOKEN ? letters + 1 : 0;
            continue;
        }
        if (kind != DIGIT && (kind != MARK || !is_of_base64(bytes[end])))
            break;
        *(kind == DIGIT ? &digits : &others) += 1;
        letters = 0;
    }
    size_t share = end >= LONG_DENSE ? DIGITS_OF_LONG : DIGITS_OF_DENSE;
    bool is_dense = end >= LEAST_DENSE && digits * share >= end;
    // Of a dense run each digit is a token, and five letters are four.
    *sum += is_dense ? end - (end - digits) / 5 : digits + others;
    return end;
}

// Adds blanks or punctuation. Many that are equal are few tokens, and two marks are often one. A blank before a word
// belongs to its token; one before a digit does not.
static size_t add_equal(const unsigned char *bytes, size_t size, enum kind kind, size_t *sum)
{
    size_t end = 1;
    while (end < size && bytes[end] == bytes[0])
        end++;
    enum kind next = size > 1 ? kind_of(bytes[1]) : CONTROL;
    if (end == 1 && bytes[0] == ' ') {
        *sum += next == DIGIT;
        return 1;
    }
    *sum += 1 + end / 8;
    return end == 1 && kind == MARK && next == MARK ? 2 : end;
}

// Adds a character that is not ASCII. Of those with two bytes, Greek and Cyrillic cost less than Latin, Hebrew and
// Arabic.
static size_t add_character(const unsigned char *bytes, size_t size, size_t *sum)
{
    size_t end = 1;
    while (end < size && end < 4 && (bytes[end] & 0xC0) == 0x80)
        end++;
    bool is_cheap = end == 1 || (bytes[0] >= 0xCE && bytes[0] <= 0xD3);
    *sum += is_cheap ? 1 : end == 2 ? 2 : end - 1;
    return end;
}

size_t tokens_estimate(const char *utf8, size_t size)
{
    size_t sum = 0;
    const unsigned char *bytes = (const unsigned char *)utf8;
    for (size_t i = 0; i < size;) {
        enum kind kind = kind_of(bytes[i]);
        if (kind == LETTER || kind == DIGIT)
            i += add_run(bytes + i, size - i, &sum);
        else if (kind == OTHER)
            i += add_character(bytes + i, size - i, &sum);
        else if (kind != CONTROL)
            i += add_equal(bytes + i, size - i, kind, &sum);
        else
            sum++, i++;
    }
    return sum;
}
