// SPDX-License-Identifier: Apache-2.0
// core/secret.h at its edges: every cut of every form in memory of just that size, and texts made of what escapes are
// made of.
#include "core/secret.h"

#include "core/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char secret[] = "sba-Zq83+Lm/0pWx=_7rTgB~hy%2K\\q";

// Redacts a copy that ends where its memory ends.
static int redact(const char *bytes, size_t size, struct buffer *out)
{
    char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    int found = secret_redact(exact, size, out);
    free(exact);
    return found;
}

static bool holds(const struct buffer *text, const char *part)
{
    return memmem(text->data, text->size, part, strlen(part)) != NULL;
}

// Every part of at least `telling` bytes gives a secret away.
static void check_every_cut(const char *text, size_t size, size_t telling)
{
    for (size_t from = 0; from < size; from++)
        for (size_t to = from; to <= size; to++) {
            struct buffer out = {0};
            int found = redact(text + from, to - from, &out);
            assert_true(found >= 0);
            assert_true(found == 0 ? out.size == 0 : holds(&out, "[redacted]"));
            assert_true(found || to - from < telling);
            buffer_free(&out);
        }
}

static void nothing_is_known_at_first(void **state)
{
    (void)state;
    struct buffer out = {0};
    assert_false(secret_is_known());
    assert_int_equal(redact(secret, strlen(secret), &out), 0);
    assert_int_equal(secret_add("short", 5), 0);
    assert_int_equal(secret_add("a\\\\\\\\\\b", 7), 0);
    assert_false(secret_is_known());
    assert_int_equal(secret_add(secret, strlen(secret)), 1);
    assert_int_equal(secret_add(secret, strlen(secret)), 1);
    assert_true(secret_is_known());
}

static void every_cut_of_every_form(void **state)
{
    (void)state;
    char escaped[8 * sizeof secret], percent[4 * sizeof secret];
    struct buffer base64 = {0};
    for (size_t i = 0; secret[i]; i++) {
        snprintf(escaped + 6 * i, 8, "\\u%04x", (unsigned char)secret[i]);
        snprintf(percent + 3 * i, 4, "%%%02X", (unsigned char)secret[i]);
    }
    check_every_cut(secret, strlen(secret), 8 + 1);
    check_every_cut(escaped, strlen(escaped), 6 * (8 + 2));
    check_every_cut(percent, strlen(percent), 3 * (8 + 2));
    assert_int_equal(text_base64_encode(secret, strlen(secret), &base64), 0);
    check_every_cut(base64.data, base64.size - 2, 11 + 1);
    buffer_free(&base64);
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

// Pieces of the secret among pieces of escapes: nothing is read past the end, and what is written holds no secret.
static void texts_made_of_escapes(void **state)
{
    (void)state;
    static const char *const pieces[] = {"%",    "%25", "25",      "\\",  "\\\\", "u00",         "\\u0073", "%73",
                                         "~0",   "~1",  "...",     "]\n", "\n",   "[",           " ",       "\r",
                                         "c2Jh", "=",   "-Zq83+L", "sba", "/",    "\xE2\x80\xA6"};
    uint32_t seed = 20261121;
    for (int round = 0; round < 100000; round++) {
        char text[400];
        size_t size = 0;
        for (uint32_t left = next_random(&seed) % 12; left > 0; left--) {
            const char *piece = pieces[next_random(&seed) % (sizeof pieces / sizeof *pieces)];
            if (next_random(&seed) % 8 == 0)
                piece = secret + next_random(&seed) % (sizeof secret - 1);
            size_t length = strlen(piece);
            memcpy(text + size, piece, length);
            size += length;
        }
        struct buffer out = {0}, again = {0};
        int found = redact(text, size, &out);
        assert_true(found >= 0);
        if (found) {
            assert_false(holds(&out, secret));
            assert_true(out.size <= size + 4 * (size / SECRET_SHORTEST + 1));
            redact(out.data, out.size, &again);
        }
        buffer_free(&out);
        buffer_free(&again);
    }
}

// What a hostile command may print to make the search slow: twice the text must not take much more than twice as long,
// or this test does not end.
static void long_runs(void **state)
{
    (void)state;
    static const char *const units[] = {"\\",  "%",    "%25", "25", "%2525", "\\u0073", "\\\\u",
                                        "...", "[...", " \n", "s",  "sb",    "c ",      "c2Jh\n"};
    enum { SIZE = 4 << 20 };
    char *text = malloc(SIZE);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        for (size_t at = 0; at < SIZE; at++)
            text[at] = units[i][at % strlen(units[i])];
        struct buffer out = {0};
        assert_true(secret_redact(text, SIZE, &out) >= 0);
        buffer_free(&out);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(every_cut_of_every_form),
        cmocka_unit_test(texts_made_of_escapes),
        cmocka_unit_test(long_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
