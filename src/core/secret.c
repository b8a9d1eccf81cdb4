// SPDX-License-Identifier: Apache-2.0
// Takes secrets out of text, see secret.h. The text is gone through once, whatever the number of secrets: a table of
// byte pairs says where one may begin, which is nearly nowhere.
#include "core/secret.h"

#include "core/cleanup.h"
#include "core/secret_form.h"
#include "core/text.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 1 << 16, LONGEST_ESCAPE_REST = 5, TELLING = 8 };

static const char redacted[] = "[redacted]";

typedef unsigned char pair_set[PAIRS / CHAR_BIT];

static struct secret_form *forms;
static size_t form_count;
static struct buffer *literals; // the secrets as they are
static size_t literal_count;
static pair_set begins;            // pairs with which a secret begins
static bool firsts[1 << CHAR_BIT]; // characters with which one does
static pair_set within;            // pairs with which the rest of a secret does

static inline bool has_pair(const pair_set set, const char *bytes)
{
    unsigned pair = (unsigned)(unsigned char)bytes[0] << 8 | (unsigned char)bytes[1];
    return set[pair / CHAR_BIT] >> (pair % CHAR_BIT) & 1;
}

static void add_pair(unsigned char first, unsigned char second, void *set)
{
    unsigned pair = (unsigned)first << 8 | second;
    ((unsigned char *)set)[pair / CHAR_BIT] |= (unsigned char)(1u << pair % CHAR_BIT);
}

// Takes the form's bytes over; NULL where there was no memory for them.
static int add_form(struct secret_form form)
{
    struct secret_form *more = form.bytes ? realloc(forms, (form_count + 1) * sizeof *forms) : NULL;
    if (!more) {
        free(form.bytes);
        return -1;
    }
    forms = more;
    forms[form_count++] = form;
    secret_form_firsts(&form, firsts);
    secret_form_pairs(&form, 0, add_pair, begins);
    for (size_t at = 1; at < form.size; at++)
        secret_form_pairs(&form, at, add_pair, within);
    return 0;
}

// The secret as characters, any of which may be escaped.
static int add_characters(const char *bytes, size_t size, size_t telling, bool verbatim)
{
    struct secret_form form = {.bytes = malloc(size), .verbatim = verbatim};
    for (size_t i = 0; form.bytes && i < size; i++)
        if (bytes[i] != '\\')
            form.bytes[form.size++] = (unsigned char)bytes[i];
    form.telling = telling < form.size ? telling : form.size;
    return add_form(form);
}

// The base64 characters that the secret alone decides when `before` bytes modulo 3 come before it.
static int add_base64(const char *bytes, size_t size, size_t before, size_t telling)
{
    cleanup_buffer struct buffer shifted = {0}, encoded = {0};
    if (buffer_append(&shifted, "\0\0", before) < 0 || buffer_append(&shifted, bytes, size) < 0 ||
        text_base64_encode(shifted.data, shifted.size, &encoded) < 0)
        return -1;
    size_t first = (before * 8 + 5) / 6, end = (before + size) * 8 / 6;
    struct secret_form form = {.size = end - first, .telling = (telling * 8 + 5) / 6, .base64 = true};
    form.bytes = malloc(form.size);
    if (form.bytes)
        memcpy(form.bytes, encoded.data + first, form.size);
    return add_form(form);
}

static int add_literal(const char *bytes, size_t size)
{
    struct buffer *more = realloc(literals, (literal_count + 1) * sizeof *literals);
    if (!more)
        return -1;
    literals = more;
    literals[literal_count] = (struct buffer){0};
    if (buffer_append(&literals[literal_count], bytes, size) < 0)
        return -1;
    literal_count++;
    firsts[(unsigned char)bytes[0]] = true;
    add_pair((unsigned char)bytes[0], (unsigned char)bytes[1], begins);
    add_pair('.', '.', begins); // ellipses, after which the rest of a secret may stand
    add_pair(0xE2, 0x80, begins);
    return 0;
}

static size_t telling_of(size_t size)
{
    size_t half = (size + 1) / 2;
    return half < SECRET_SHORTEST ? SECRET_SHORTEST : half < TELLING ? half : TELLING;
}

int secret_add(const char *bytes, size_t size)
{
    size_t backslashes = 0;
    for (size_t i = 0; i < size; i++)
        backslashes += bytes[i] == '\\';
    if (size - backslashes < SECRET_SHORTEST)
        return 0;
    for (size_t i = 0; i < literal_count; i++)
        if (literals[i].size == size && memcmp(literals[i].data, bytes, size) == 0)
            return 1;
    size_t telling = telling_of(size);
    if (add_literal(bytes, size) < 0 || add_characters(bytes, size, telling, false) < 0)
        return -1;
    if (memchr(bytes, '%', size) && add_characters(bytes, size, telling, true) < 0)
        return -1;
    for (size_t before = 0; before < 3; before++)
        if (add_base64(bytes, size, before, telling) < 0)
            return -1;
    return 1;
}

bool secret_is_known(void)
{
    return literal_count > 0;
}

// Whether the form's first character is the text's, where that is no escape.
static inline bool may_begin_with(const struct secret_form *form, char first)
{
    if ((unsigned char)first == form->bytes[0] || first == '%' || first == '\\' || first == '~')
        return true;
    return form->base64 && (first == '-' || first == '_');
}

// Where the longest secret ends that begins at text[start]; start where there is none.
static size_t end_of_secret(const char *text, size_t size, size_t start)
{
    size_t end = start;
    for (size_t i = 0; i < literal_count; i++)
        if (literals[i].size <= size - start && memcmp(text + start, literals[i].data, literals[i].size) == 0 &&
            start + literals[i].size > end)
            end = start + literals[i].size;
    for (size_t i = 0; i < form_count; i++) {
        struct secret_match match;
        if (may_begin_with(&forms[i], text[start]) && secret_form_matches(&forms[i], 0, text, size, start, &match) &&
            (match.whole || match.count >= forms[i].telling) && match.end > end)
            end = match.end;
    }
    return end;
}

// The same of what is left of a secret that began before the text.
static size_t end_of_rest(const char *text, size_t size, size_t start)
{
    size_t end = start;
    for (size_t i = 0; i < form_count; i++)
        for (size_t from = 1; from + forms[i].telling <= forms[i].size; from++) {
            struct secret_match match;
            if (secret_form_matches(&forms[i], from, text, size, start, &match) && match.count >= forms[i].telling &&
                match.end > end)
                end = match.end;
        }
    return end;
}

// Where the rest of a secret ends that the text begins with, perhaps in the middle of an escape; 0 where there is none.
static size_t end_of_first(const char *text, size_t size)
{
    for (size_t start = 0; start <= LONGEST_ESCAPE_REST && start + 1 < size; start++) {
        size_t end = has_pair(within, text + start) ? end_of_rest(text, size, start) : start;
        if (end > start)
            return end;
        if (!strchr("0123456789abcdefABCDEFu", text[start]) || !text[start])
            return 0;
    }
    return 0;
}

// The first place after the run of backslashes at text[at], or at where there is none.
static size_t after_backslashes(const char *text, size_t size, size_t at)
{
    while (at < size && text[at] == '\\')
        at++;
    return at;
}

// Where the secret ends whose rest stands after the ellipsis at text[at], or after the note "[... ...]\n" that it ends;
// at where there is none.
static size_t end_after_ellipsis(const char *text, size_t size, size_t at)
{
    size_t rest = at + secret_ellipsis(text + at, size - at);
    for (const char *closing = "]\n"; rest > at && rest + 1 < size; rest++) {
        size_t end = has_pair(within, text + rest) ? end_of_rest(text, size, rest) : rest;
        if (end > rest)
            return end;
        if (!*closing || text[rest] != *closing++)
            break;
    }
    return at;
}

// Where the secret at text[at] ends, which begins there or, after an ellipsis, goes on; at where there is none.
static size_t end_of_any(const char *text, size_t size, size_t at)
{
    size_t end = end_after_ellipsis(text, size, at);
    return end > at || !secret_may_begin(firsts, text + at, size - at) ? end : end_of_secret(text, size, at);
}

// Where the next secret begins from `from` on, and ends; size where there is none. A run of backslashes is looked at
// once.
static size_t next_secret(const char *text, size_t size, size_t from, size_t *end)
{
    for (size_t at = from; at + 1 < size; at++) {
        if (!has_pair(begins, text + at))
            continue;
        if ((*end = end_of_any(text, size, at)) > at)
            return at;
        if (text[at] == '\\')
            at = after_backslashes(text, size, at) - 1;
    }
    return size;
}

int secret_redact(const char *bytes, size_t size, struct buffer *out)
{
    if (!secret_is_known() || size < SECRET_SHORTEST)
        return 0;
    size_t done = 0, start = 0, end = end_of_first(bytes, size);
    if (end == 0)
        start = next_secret(bytes, size, 0, &end);
    if (start == size)
        return 0;
    for (; start < size; start = next_secret(bytes, size, done, &end)) {
        if (buffer_append(out, bytes + done, start - done) < 0 || buffer_append(out, redacted, sizeof redacted - 1) < 0)
            return -1;
        done = end;
    }
    return buffer_append(out, bytes + done, size - done) < 0 ? -1 : 1;
}
