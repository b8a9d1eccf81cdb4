// SPDX-License-Identifier: Apache-2.0
// core/text/secret.h at its edges: every cut of every encoding, and time that is linear.
#include "core/text/secret.h"

#include "check.h"
#include "core/text/text.h"

static const char secret[] = "sba-Zq83+Lm/0pWx=_7rTgB~hy%2K\\q'\xC3\xA4";

enum { LEAST = 4 };

// The bytes without secrets.
static struct buffer redacted(const char *bytes, size_t size, unsigned cuts)
{
    struct buffer text = {0};
    int found = secret_redact_copy(bytes, size, cuts, &text);
    assert_in_range(found, 0, 1);
    if (!found)
        assert_int_equal(buffer_append(&text, bytes, size), 0);
    assert_int_equal(found, text.size != size || memcmp(text.data, bytes, size) != 0);
    return text;
}

static void check_cut(const char *text, size_t from, size_t to, size_t size, size_t unit)
{
    unsigned cuts = (from > 0 ? SECRET_CUT_START : 0) | (to < size ? SECRET_CUT_END : 0);
    struct buffer out = redacted(text + from, to - from, cuts);
    if (to - from >= (LEAST + 2) * unit)
        assert_true(out.size < (LEAST + 2) * unit + strlen("[redacted]"));
    buffer_free(&out);
    out = redacted(text + from, to - from, 0);
    assert_int_equal(out.size == to - from, from > 0 || to < size);
    buffer_free(&out);
}

static void every_cut_of_every_encoding(void **state)
{
    char escaped[8 * sizeof secret], percent[4 * sizeof secret];
    struct buffer base64 = {0};
    size_t size = strlen(secret), characters = size - 2;
    for (size_t i = 0; i < characters; i++)
        snprintf(escaped + 6 * i, 8, "\\u%04x", (unsigned char)secret[i]);
    strcpy(escaped + 6 * characters, "\\u00E4");
    for (size_t i = 0; i < size; i++)
        snprintf(percent + 3 * i, 4, "%%%02X", (unsigned char)secret[i]);
    const char *quote = strchr(secret, '\'');
    char shell[2][sizeof secret + 4];
    for (size_t i = 0; i < 2; i++)
        snprintf(shell[i], sizeof *shell, "%.*s%s%s", (int)(quote - secret), secret, i ? "'\\''" : "'\"'\"'",
                 quote + 1);
    assert_int_equal(text_base64_encode(secret, size / 3 * 3, &base64), 0);
    struct {
        const char *text;
        size_t size, unit;
    } encodings[] = {{secret, size, 1},
                     {escaped, strlen(escaped), 6},
                     {percent, strlen(percent), 3},
                     {shell[0], strlen(shell[0]), 5},
                     {shell[1], strlen(shell[1]), 4}};
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++)
        for (size_t from = 0; from < encodings[i].size; from++)
            for (size_t to = from + 1; to <= encodings[i].size; to++)
                check_cut(encodings[i].text, from, to, encodings[i].size, encodings[i].unit);
    for (size_t to = 1; to <= base64.size; to++) {
        struct buffer out = redacted(base64.data, to, SECRET_CUT_END);
        assert_int_equal(out.data[0] != '[', to < LEAST);
        buffer_free(&out);
    }
    buffer_free(&base64);
}

// Parts of the secret among parts of escapes: nothing outside the text is read.
static void texts_made_of_escapes(void **state)
{
    static const char *const parts[] = {"%",  "%2",   "%73",   "\\",     "\\\\", "u00", "\\u0073", "\\ud83d\\ude00",
                                        "\n", "c2Jh", "'\\''", "'\"'\"", "'"};
    srand(20261121);
    for (int round = 0; round < 20000; round++) {
        char text[600];
        size_t size = 0;
        for (int left = 1 + rand() % 12; left > 0; left--) {
            const char *part = rand() % 8 ? parts[(size_t)rand() % (sizeof parts / sizeof *parts)]
                                          : secret + (size_t)rand() % (sizeof secret - 1);
            memcpy(text + size, part, strlen(part));
            size += strlen(part);
        }
        struct buffer out = redacted(text, size, (unsigned)rand() % 4);
        assert_null(memmem(out.data, out.size, secret, strlen(secret)));
        buffer_free(&out);
    }
}

// Moves to `out` what can be redacted of a text of which more may come.
static void take(struct buffer *pending, bool goes_on, bool *is_cut, struct buffer *out)
{
    size_t size = pending->size;
    if (goes_on) {
        assert_int_equal(secret_redact_settled(pending->data, &size, is_cut, out), 0);
    } else {
        struct buffer rest = redacted(pending->data, size, *is_cut ? SECRET_CUT_START : 0);
        assert_int_equal(buffer_append(out, rest.data, rest.size), 0);
        buffer_free(&rest);
    }
    pending->size -= size;
    memmove(pending->data, pending->data + size, pending->size);
}

// In pieces of every size, what is settled and redacted piece by piece is what redacting the whole gives, but for up to
// `more` characters.
static void check_pieces(const char *text, size_t size, size_t piece, size_t more)
{
    bool is_cut = false;
    struct buffer pending = {0}, out = {0}, whole = redacted(text, size, 0);
    for (size_t at = 0; at < size; at += piece) {
        assert_int_equal(buffer_append(&pending, text + at, piece < size - at ? piece : size - at), 0);
        take(&pending, at + piece < size, &is_cut, &out);
    }
    assert_in_range(out.size, whole.size, whole.size + more);
    if (more == 0)
        assert_memory_equal(out.data, whole.data, whole.size);
    buffer_free(&pending);
    buffer_free(&out);
    buffer_free(&whole);
}

// How many bytes of a piece are held back, and whether the next one may begin within a secret.
static void check_held(const char *piece, size_t held, bool is_cut)
{
    bool next = false;
    struct buffer out = {0};
    size_t size = strlen(piece);
    assert_int_equal(secret_redact_settled(piece, &size, &next, &out), 0);
    assert_int_equal(strlen(piece) - size, held);
    assert_int_equal(next, is_cut);
    buffer_free(&out);
}

static void pieces_of_every_encoding(void **state)
{
    char text[2000] = "sba-Zq83, not it; ";
    struct buffer base64 = {0};
    assert_int_equal(text_base64_encode(secret, strlen(secret), &base64), 0);
    for (size_t i = 0; i < strlen(secret); i++)
        snprintf(text + strlen(text), 4, i % 2 ? "%c" : "%%%02X", (unsigned char)secret[i]);
    snprintf(text + strlen(text), 1000, "; %s%s and %.*s\n  %.*s, ends sba-Zq%%2", secret, secret, 8, base64.data,
             (int)base64.size - 8, base64.data + 8);
    for (size_t piece = 1; piece < strlen(text); piece++)
        check_pieces(text, strlen(text), piece, LEAST - 1);
    strstr(text, " and ")[0] = '\0'; // without the base64
    for (size_t piece = 1; piece < strlen(text); piece++)
        check_pieces(text, strlen(text), piece, 0);
    check_held("abc sba-Z", 5, false);
    check_held("abc\n", 0, true); // the c of c2Jh
    check_held("ab!", 0, false);
    buffer_free(&base64);
}

static void check_redacted(const char *text, const char *wanted)
{
    struct buffer out = redacted(text, strlen(text), 0);
    assert_int_equal(out.size, strlen(wanted));
    assert_memory_equal(out.data, wanted, out.size);
    buffer_free(&out);
}

// Secrets side by side are told apart; those that share bytes are one.
static void neighbours_and_overlaps(void **state)
{
    char text[200];
    const char *end = secret + 20, *after = "and the next";
    snprintf(text, sizeof text, "%s%s", end, after);
    assert_int_equal(secret_add(text, strlen(text)), 1);
    snprintf(text, sizeof text, "1%s%s2", secret, secret);
    check_redacted(text, "1[redacted][redacted]2");
    snprintf(text, sizeof text, "1%s %s2", secret, secret);
    check_redacted(text, "1[redacted] [redacted]2");
    snprintf(text, sizeof text, "1%s%s2", secret, after);
    check_redacted(text, "1[redacted]2");
    snprintf(text, sizeof text, "1%s%s%s%s2", secret, after, end, after);
    check_redacted(text, "1[redacted][redacted]2");
}

// What could make the search slow: were it quadratic, this test would not end.
static void long_runs(void **state)
{
    static const char *const units[] = {"\\", "%", "%2525", "\\u0073", "s", "sb", "c2Jh\n", "a", " ", "\n", "\\n"};
    enum { SIZE = 1 << 17 };
    char *text = malloc(SIZE), periodic[60];
    assert_non_null(text);
    memset(periodic, 'a', sizeof periodic);
    assert_int_equal(secret_add(periodic, sizeof periodic), 1);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        for (size_t at = 0; at < SIZE; at++)
            text[at] = units[i][at % strlen(units[i])];
        struct buffer out = redacted(text, SIZE, SECRET_CUT_START | SECRET_CUT_END);
        buffer_free(&out);
    }
    memset(text, '\n', SIZE);
    for (const char *letter = "YWFh"; *letter; letter++) { // each begins the periodic secret's rests in base64
        text[0] = *letter;
        struct buffer out = redacted(text, SIZE, SECRET_CUT_START);
        buffer_free(&out);
    }
    free(text);
}

// An operator may give a hundred keys, of several lines each: were all of them tried at each place, this test would not
// end either.
static void many_secrets(void **state)
{
    enum { COUNT = 400, LENGTH = 39, SIZE = 1 << 21 };
    struct buffer text = {0};
    srand(20261128);
    for (int i = 0; i < COUNT; i++) {
        char one[LENGTH + 1] = {0};
        for (size_t at = 0; at < LENGTH; at++)
            one[at] = (char)(' ' + 1 + rand() % ('~' - ' '));
        assert_int_equal(secret_add(one, LENGTH), 1);
        check_redacted(one, "[redacted]");
        assert_int_equal(text_base64_encode(one, LENGTH, &text), 0);
        assert_int_equal(buffer_append(&text, "\n", 1), 0);
    }
    struct buffer out = redacted(text.data, text.size, 0);
    assert_int_equal(out.size, COUNT * strlen("[redacted]\n"));
    buffer_free(&out);
    text.size = 0;
    while (text.size < SIZE)
        assert_int_equal(buffer_append(&text, "GET /items?id=12345 200 a word of a log\n", 40), 0);
    out = redacted(text.data, text.size, SECRET_CUT_START | SECRET_CUT_END);
    buffer_free(&out);
    buffer_free(&text);
}

static int add_secret(void **state)
{
    struct buffer text = redacted(secret, strlen(secret), 0);
    assert_int_equal(text.size, strlen(secret)); // none is known yet
    buffer_free(&text);
    assert_int_equal(secret_add("short", 5), 0);
    assert_false(secret_is_known());
    assert_int_equal(secret_add(secret, strlen(secret)), 1);
    assert_int_equal(secret_add(secret, strlen(secret)), 1);
    return secret_is_known() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_of_every_encoding),
        cmocka_unit_test(texts_made_of_escapes),
        cmocka_unit_test(pieces_of_every_encoding),
        cmocka_unit_test(neighbours_and_overlaps),
        cmocka_unit_test(long_runs),
        cmocka_unit_test(many_secrets),
    };
    return cmocka_run_group_tests(tests, add_secret, NULL);
}
