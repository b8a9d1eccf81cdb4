// SPDX-License-Identifier: Apache-2.0
// UTF-8, base64, SHA-256 and counting, see text.h. The SHA-256 functions are OpenSSL's low-level ones, because the
// newer interface loads a provider first, which costs a short job more than its own work.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "core/text/text.h"

#include <limits.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdint.h>

static const uint64_t high_bits = 0x8080808080808080u;

// How many bytes at the start are ASCII.
static size_t ascii_span(const unsigned char *bytes, size_t size)
{
    size_t i = 0;
    for (; i + 32 <= size; i += 32) {
        uint64_t words[4];
        memcpy(words, bytes + i, sizeof words);
        if ((words[0] | words[1] | words[2] | words[3]) & high_bits)
            break;
    }
    while (i < size && bytes[i] < 0x80)
        i++;
    return i;
}

size_t text_plain_span(const char *bytes, size_t size)
{
    const uint64_t ones = high_bits >> 7;
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        uint64_t quotes = word ^ ones * '"', backslashes = word ^ ones * '\\';
        // What is too small borrows from the next byte, which the loop below looks at again.
        if ((word | (word - ones * ' ') | (quotes - ones) | (backslashes - ones)) & high_bits)
            break;
    }
    while (i < size && bytes[i] >= ' ' && bytes[i] != '"' && bytes[i] != '\\' && !(bytes[i] & 0x80))
        i++;
    return i;
}

// Length of the character at the start of bytes (size > 0). If it is ill-formed, *good is false, and the length is that
// of the maximal subpart (Unicode 15, section 3.9) which one U+FFFD replaces, at least one byte.
static size_t character_length(const char *bytes, size_t size, bool *good)
{
    const unsigned char *p = (const unsigned char *)bytes;
    unsigned char low, high;
    size_t length = text_sequence_length(p[0], &low, &high), i = 1;
    for (; i < length && i < size && p[i] >= low && p[i] <= high; i++) {
        low = 0x80;
        high = 0xBF;
    }
    *good = i == length;
    return i;
}

// Length of the longest prefix that is well-formed UTF-8.
static size_t utf8_span(const char *bytes, size_t size)
{
    bool good = true;
    for (size_t i = 0;;) {
        i += ascii_span((const unsigned char *)bytes + i, size - i);
        if (i == size)
            return i;
        size_t length = character_length(bytes + i, size - i, &good);
        if (!good)
            return i;
        i += length;
    }
}

bool text_is_utf8(const char *bytes, size_t size)
{
    return utf8_span(bytes, size) == size;
}

int text_repair(const char *bytes, size_t size, struct buffer *out)
{
    if (buffer_reserve(out, size) < 0)
        return -1;
    for (size_t i = 0;;) {
        size_t good = utf8_span(bytes + i, size - i);
        if (buffer_append(out, bytes + i, good) < 0)
            return -1;
        i += good;
        if (i == size)
            return 0;
        if (buffer_append(out, "\xEF\xBF\xBD", 3) < 0)
            return -1;
        bool unused;
        i += character_length(bytes + i, size - i, &unused);
    }
}

int text_repair_all(struct buffer *text)
{
    struct buffer repaired = {0};
    if (text_is_utf8(text->data, text->size))
        return 0;
    int outcome = text_repair(text->data, text->size, &repaired);
    buffer_free(outcome < 0 ? &repaired : text);
    if (outcome == 0)
        *text = repaired;
    return outcome;
}

static bool goes_on(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

size_t text_count_newlines(const char *bytes, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += bytes[i] == '\n';
    return count;
}

size_t text_count_characters(const char *utf8, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += !goes_on(utf8[i]);
    return count;
}

size_t text_cut(const char *utf8, size_t size, size_t limit)
{
    if (size <= limit)
        return size;
    while (limit > 0 && goes_on(utf8[limit]))
        limit--;
    return limit;
}

size_t text_tail(const char *utf8, size_t size, size_t limit)
{
    if (size <= limit)
        return size;
    while (limit > 0 && goes_on(utf8[size - limit]))
        limit--;
    return limit;
}

size_t text_half(const char *bytes, size_t size)
{
    enum { MOST = 3 }; // more are no character
    size_t half = 0;
    while (half < MOST && half < size && goes_on(bytes[half]))
        half++;
    return half;
}

size_t text_whole(const char *bytes, size_t size)
{
    bool good = true;
    for (size_t back = 1; back < 4 && back <= size; back++)
        if ((unsigned char)bytes[size - back] >= 0xC0)
            return character_length(bytes + size - back, back, &good) == back && !good ? size - back : size;
    return size;
}

size_t text_base64_write(const char *bytes, size_t size, char *out)
{
    return (size_t)EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)bytes, (int)size);
}

int text_base64_encode(const char *bytes, size_t size, struct buffer *out)
{
    if (size > INT_MAX / 2 || buffer_reserve(out, (size + 2) / 3 * 4 + 1) < 0)
        return -1;
    out->size += text_base64_write(bytes, size, out->data + out->size);
    return 0;
}

// OpenSSL skips blanks around the text, takes = anywhere as a zero, and ignores the unused bits.
int text_base64_decode(const char *base64, size_t size, struct buffer *out, struct error *error)
{
    if (size % 4)
        return error_set(error, "invalid", 0, "not base64: %zu bytes are no multiple of 4", size);
    if (size > INT_MAX || buffer_reserve(out, size / 4 * 3) < 0)
        return error_memory(error, "cannot decode %zu bytes of base64", size);
    size_t padding = size == 0 || base64[size - 1] != '=' ? 0 : base64[size - 2] != '=' ? 1 : 2;
    size_t digits = size - padding, decoded = size / 4 * 3;
    unsigned char *to = (unsigned char *)out->data + out->size;
    if (EVP_DecodeBlock(to, (const unsigned char *)base64, (int)size) != (int)decoded || memchr(base64, '=', digits))
        return error_set(error, "invalid", 0, "not base64: it holds a byte outside its alphabet");
    if (padding && to[decoded - padding])
        return error_set(error, "invalid", 0, "not base64: unused bits at its end are not zero");
    out->size += decoded - padding;
    return 0;
}

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct text_sha256), "text_sha256 holds OpenSSL's context");

void text_sha256_init(struct text_sha256 *sha256)
{
    SHA256_Init((SHA256_CTX *)(void *)sha256->state);
}

void text_sha256_update(struct text_sha256 *sha256, const void *bytes, size_t size)
{
    SHA256_Update((SHA256_CTX *)(void *)sha256->state, bytes, size);
}

void text_sha256_final(struct text_sha256 *sha256, char hex[TEXT_SHA256_HEX])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256_Final(digest, (SHA256_CTX *)(void *)sha256->state);
    for (size_t i = 0; i < sizeof digest; i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    hex[TEXT_SHA256_HEX - 1] = '\0';
}

int text_json_append(const char *utf8, size_t size, struct buffer *out)
{
    static const char letters[] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu"; // by control character: \b is 8; u is \u00XX
    static const char digits[] = "0123456789abcdef";
    size_t done = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)utf8[i];
        if (c >= ' ' && c != '"' && c != '\\')
            continue;
        char letter = c < ' ' ? letters[c] : utf8[i];
        char escape[] = {'\\', letter, '0', '0', digits[c >> 4], digits[c & 15]};
        if (buffer_append(out, utf8 + done, i - done) < 0 || buffer_append(out, escape, letter == 'u' ? 6 : 2) < 0)
            return -1;
        done = i + 1;
    }
    return buffer_append(out, utf8 + done, size - done);
}
