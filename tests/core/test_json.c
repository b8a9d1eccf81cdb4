// SPDX-License-Identifier: Apache-2.0
// core/json: strings and numbers as JSON text. bind/json_spec.lua has more; here are the bounds of memory.
#include "core/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *exact_copy(const char *bytes, size_t size) // so that AddressSanitizer sees a read past the end
{
    char *copy = malloc(size + !size);
    memcpy(copy, bytes, size);
    return copy;
}

static void check_unescape(const char *inside, const char *wanted, size_t wanted_size)
{
    struct buffer out = {0};
    size_t size = strlen(inside);
    char *exact = exact_copy(inside, size);
    bool out_of_memory;
    size_t used = json_unescape(exact, size, &out, &out_of_memory);
    assert_false(out_of_memory);
    assert_int_equal(used, wanted ? size : (size_t)(strchr(inside, '\\') - inside));
    if (wanted) {
        assert_int_equal(out.size, wanted_size);
        assert_memory_equal(out.data ? out.data : "", wanted, wanted_size);
    }
    free(exact);
    buffer_free(&out);
}

#define GOOD(inside, wanted) check_unescape(inside, wanted, sizeof(wanted) - 1)
#define BAD(inside) check_unescape(inside, NULL, 0)

static void unescapes(void **state)
{
    (void)state;
    GOOD("", "");
    GOOD("plain", "plain");
    GOOD("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t");
    GOOD("a\\u0000b\\u00e9\\u20AC\\uFFFF", "a\0b\xC3\xA9\xE2\x82\xAC\xEF\xBF\xBF");
    GOOD("\\uD83D\\ude00\\udbff\\udfff", "\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF");
    BAD("\\");
    BAD("a\\x");
    BAD("\\u");
    BAD("\\u12");
    BAD("\\u12g4");
    BAD("\\ud800");
    BAD("\\ud800\\u0041");
    BAD("\\ud800\\udc0");
    BAD("\\udc00");
    BAD("\\ud800xudc00");
    BAD("plain\\u00e");
}

// Every byte at every place of a word and after one.
static void finds_the_end_of_a_plain_run(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 24; size++)
        for (size_t at = 0; at < size; at++)
            for (int byte = 0; byte < 256; byte++) {
                char *exact = malloc(size);
                memset(exact, byte & 1 ? 'x' : 0xC3, size);
                exact[at] = (char)byte;
                size_t wanted = byte < 0x20 || byte == '"' || byte == '\\' ? at : size;
                assert_int_equal(json_plain_span(exact, size), wanted);
                free(exact);
            }
}

static void quotes_at_every_length(void **state)
{
    static const char tail[] = "\xC3\xA9\"\n\xFF";
    (void)state;
    for (size_t length = 0; length < 40; length++) {
        char bytes[64];
        struct buffer out = {0}, back = {0};
        memset(bytes, 'x', length);
        memcpy(bytes + length, tail, sizeof tail - 1);
        size_t size = length + sizeof tail - 1;
        char *exact = exact_copy(bytes, size);
        assert_int_equal(json_quote(exact, size, &out), 0);
        assert_int_equal(out.size, length + 2 + 2 + 2 + 2 + 3);
        assert_memory_equal(out.data + 1 + length, "\xC3\xA9\\\"\\n\xEF\xBF\xBD\"", 10);
        bool out_of_memory;
        assert_int_equal(json_unescape(out.data + 1, out.size - 2, &back, &out_of_memory), out.size - 2);
        assert_memory_equal(back.data, bytes, size - 1);
        free(exact);
        buffer_free(&out);
        buffer_free(&back);
    }
}

static void counts_values_outside_strings(void **state)
{
    static const struct {
        const char *text;
        size_t count;
    } cases[] = {
        {"", 1},
        {"1", 1},
        {"[1,2,3]", 4},
        {"[[],{}]", 5},
        {"{\"a\":1,\"b\":[2]}", 6},
        {"\",,,[[\"", 1},
        {"[\"\\\",\",1]", 3},
        {"[\"\\\\\",\"x\",1]", 4},
        {"\"\\\\\\\",,", 1},
        {"[\",,,", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = strlen(cases[i].text);
        char *exact = exact_copy(cases[i].text, size);
        assert_int_equal(json_count(exact, size), cases[i].count);
        free(exact);
    }
}

static void escapes_every_byte_in_the_smallest_room(void **state)
{
    (void)state;
    for (size_t length = 0; length < 50; length++) {
        char bytes[50] = {0};
        struct buffer out = {0};
        assert_int_equal(json_quote(bytes, length, &out), 0);
        assert_int_equal(out.size, 2 + 6 * length);
        buffer_free(&out);
    }
}

static size_t escaped_size(unsigned char byte)
{
    return byte == '"' || byte == '\\' || (byte && strchr("\b\t\n\f\r", byte)) ? 2 : byte < 0x20 ? 6 : 1;
}

static void check_pair(const char *bytes, size_t at)
{
    struct buffer out = {0}, back = {0};
    unsigned char first = (unsigned char)bytes[at], second = (unsigned char)bytes[at + 1];
    bool out_of_memory;
    assert_int_equal(json_quote(bytes, 16, &out), 0);
    assert_int_equal(out.size, 2 + 14 + escaped_size(first) + escaped_size(second));
    assert_int_equal(json_unescape(out.data + 1, out.size - 2, &back, &out_of_memory), out.size - 2);
    assert_int_equal(back.size, 16);
    assert_memory_equal(back.data, bytes, 16);
    buffer_free(&out);
    buffer_free(&back);
}

static void escapes_what_must_be_and_nothing_else(void **state)
{
    (void)state;
    for (size_t at = 0; at < 15; at++)
        for (int first = 0; first < 128; first++)
            for (int second = 0; second < 128; second++) {
                char bytes[16];
                memset(bytes, 'x', sizeof bytes);
                bytes[at] = (char)first;
                bytes[at + 1] = (char)second;
                check_pair(bytes, at);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unescapes),
        cmocka_unit_test(finds_the_end_of_a_plain_run),
        cmocka_unit_test(quotes_at_every_length),
        cmocka_unit_test(counts_values_outside_strings),
        cmocka_unit_test(escapes_every_byte_in_the_smallest_room),
        cmocka_unit_test(escapes_what_must_be_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
