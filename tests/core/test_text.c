// SPDX-License-Identifier: Apache-2.0
// core/text: UTF-8 repair against the Unicode Standard's examples, base64, search.
#include "core/text/text.h"

#include "check.h"

#define BAD "\xEF\xBF\xBD"
#define SIZED(literal) literal, sizeof(literal) - 1

static void check_repair(const char *bytes, size_t size, const char *wanted, size_t wanted_size)
{
    struct buffer out = {0};
    char *exact = malloc(size + !size); // so that AddressSanitizer sees a read past the end
    memcpy(exact, bytes, size);
    assert_int_equal(text_repair(exact, size, &out), 0);
    check_bytes(&out, wanted, wanted_size);
    assert_int_equal(text_is_utf8(exact, size), size == wanted_size && (!size || memcmp(bytes, wanted, size) == 0));
    assert_true(text_is_utf8(wanted, wanted_size));
    free(exact);
    buffer_free(&out);
}

static void repairs_as_the_standard_says(void **state)
{
    check_repair(SIZED(""), SIZED(""));
    check_repair(SIZED("plain\0text"), SIZED("plain\0text"));
    check_repair(SIZED("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), SIZED("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
    // Tables 3-8 to 3-11 of the standard.
    check_repair(SIZED("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), SIZED(BAD BAD BAD BAD BAD BAD BAD BAD "A"));
    check_repair(SIZED("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), SIZED(BAD BAD BAD BAD BAD BAD BAD BAD "A"));
    check_repair(SIZED("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), SIZED(BAD BAD BAD BAD BAD "A" BAD BAD "B"));
    check_repair(SIZED("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), SIZED(BAD BAD BAD BAD "A"));
}

static void repairs_what_is_cut_off(void **state)
{
    check_repair(SIZED("a\xF0\x9F\x98"), SIZED("a" BAD));
    check_repair(SIZED("a\xE2\x82"), SIZED("a" BAD));
    check_repair(SIZED("a\xC3"), SIZED("a" BAD));
    check_repair(SIZED("\xF4\x8F\xBF\xBF"), SIZED("\xF4\x8F\xBF\xBF"));
    check_repair(SIZED("\xF5\x80"), SIZED(BAD BAD));
    check_repair(SIZED("\xEF\xBF\xBF\xED\x9F\xBF\xEE\x80\x80"), SIZED("\xEF\xBF\xBF\xED\x9F\xBF\xEE\x80\x80"));
}

static void cuts_between_characters(void **state)
{
    const char *text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
    static const size_t wanted[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10, 10};
    for (size_t limit = 0; limit < sizeof wanted / sizeof *wanted; limit++)
        assert_int_equal(text_cut(text, 10, limit), wanted[limit]);
}

static void a_tail_begins_with_a_whole_character(void **state)
{
    static const char text[] = "\xF0\x9F\x98\x80\xE2\x82\xAC\xC3\xA4z";
    static const size_t wanted[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10, 10};
    for (size_t limit = 0; limit < sizeof wanted / sizeof *wanted; limit++)
        assert_int_equal(text_tail(text, 10, limit), wanted[limit]);
}

static void base64_goes_both_ways(void **state)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"},
                                           {"\xFB\xFF\xFE", "+//+"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct buffer encoded = {0}, decoded = {0};
        struct error error = {0};
        assert_int_equal(text_base64_encode(pairs[i][0], strlen(pairs[i][0]), &encoded), 0);
        check_bytes(&encoded, pairs[i][1], strlen(pairs[i][1]));
        assert_int_equal(text_base64_decode(pairs[i][1], encoded.size, &decoded, &error), 0);
        check_bytes(&decoded, pairs[i][0], strlen(pairs[i][0]));
        buffer_free(&encoded);
        buffer_free(&decoded);
    }
}

static void base64_is_strict(void **state)
{
    static const char *const bad[] = {"Z",      "Zg",    "Zg=",      "Zg===",    "====", "=",        "Zh==", "Zm9=",
                                      "Zm9v\n", "Zm 9v", "Zm9v=Zg=", "Zg==Zg==", "Zm-_", "Zm9vZ===", "Z===", "\x80mmm"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct buffer out = {0};
        struct error error = {0};
        assert_int_equal(text_base64_decode(bad[i], strlen(bad[i]), &out, &error), -1);
        assert_string_equal(error.code, "invalid");
        error_clear(&error);
        buffer_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repairs_as_the_standard_says),
        cmocka_unit_test(repairs_what_is_cut_off),
        cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(base64_goes_both_ways),
        cmocka_unit_test(base64_is_strict),
        cmocka_unit_test(a_tail_begins_with_a_whole_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
