// SPDX-License-Identifier: Apache-2.0
// File name patterns: what matches, what does not, what is refused, and that none is slow.
#include "core/text/glob.h"

#include "check.h"

static bool matches(const char *pattern, const char *path)
{
    struct error error = {0};
    struct glob *glob = glob_compile(pattern, &error);
    if (!glob)
        fail_msg("%s: %s", pattern, error.message);
    bool same = glob_match(glob, path);
    glob_free(glob);
    return same;
}

static void test_matches(void **state)
{
    static const char *const pairs[][2] = {
        {"*.c", "a.c"},
        {"*.c", "src/deep/a.c"},
        {"*", ".hidden"},
        {"a?c", "abc"},
        {"a?c", "a\xc3\xa4"
                "c"},
        {"a?c", "a\xff"
                "c"},
        {"[a-c]x", "bx"},
        {"[!a-c]x", "dx"},
        {"[^a]", "b"},
        {"[]]", "]"},
        {"[]-a]", "^"},
        {"[a-]", "-"},
        {"[\\]]", "]"},
        {"\\*", "*"},
        {"*.{c,h}", "x.h"},
        {"{a,b{c,d}}e", "bde"},
        {"{,a}b", "b"},
        {"{a}", "a"},
        {"a/{,b}", "a/b"},
        {"{,a}", "a"},
        {"a**/b", "axx/b"},
        {"src/*.c", "src/a.c"},
        {"src/**/*.c", "src/a.c"},
        {"src/**/*.c", "src/x/y/a.c"},
        {"src/**", "src/x/y"},
        {"**/a", "a"},
        {"**/a", "x/y/a"},
        {"**/x/**/a", "b/x/c/x/a"},
        {"a/**/b/*c/d", "a/b/1/b/2c/d"},
        {"x/{a,b/c}/d", "x/b/c/d"},
        {"a*b*c", "abxbc"},
        {"a**c", "abc"},
        {"[\xc3\xa4-\xc3\xbc]", "\xc3\xb6"},
        {"[{]", "{"},
        {"[,]{[,],b}", ",,"},
        {"a,b", "a,b"},
        {"\\{a\\}", "{a}"},
        {"*[", NULL},
    };
    for (size_t i = 0; pairs[i][1]; i++)
        if (!matches(pairs[i][0], pairs[i][1]))
            fail_msg("%s does not match %s", pairs[i][0], pairs[i][1]);
}

static void test_matches_not(void **state)
{
    static const char *const pairs[][2] = {
        {"*.c", "a.cc"},
        {"*.c", "a.c/b"},
        {"a?c", "ac"},
        {"[a-c]x", "dx"},
        {"[!a-c]x", "ax"},
        {"src/*.c", "src/x/a.c"},
        {"src/*.c", "lib/src/a.c"},
        {"src/**", "src"},
        {"src/**", "srcs/a"},
        {"**/a", "x/ya"},
        {"*.{c,h}", "x.d"},
        {"A", "a"},
        {"src/**/*.c", "src/x.d/y"},
        {"a/?", "a//"},
        {"\\*", "x"},
        {"a/b", "a/b/c"},
        {"a**/b", "a/x/b"},
        {"a**c", "a/c"},
        {"{,a}", "b"},
        {"a", NULL},
    };
    for (size_t i = 0; pairs[i][1]; i++)
        if (matches(pairs[i][0], pairs[i][1]))
            fail_msg("%s matches %s", pairs[i][0], pairs[i][1]);
}

static void test_malformed(void **state)
{
    static const char *const patterns[] = {
        "",    "[a",    "[",  "[]", "[!]", "{a",   "a}",     "{a,{b}",
        "a\\", "[z-a]", "/a", "a/", "{[}", "[a\\", "{a,b\\", "{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}",
        NULL,
    };
    for (size_t i = 0; patterns[i]; i++) {
        struct error error = {0};
        if (glob_compile(patterns[i], &error))
            fail_msg("%s was taken", patterns[i]);
        assert_string_equal(error.code, "invalid_glob");
        assert_non_null(error.message);
        error_clear(&error);
    }
}

// With going back to every star this would take longer than the universe lasts.
static void test_many_stars_end(void **state)
{
    char pattern[600] = "", path[4001];
    for (int i = 0; i < 60; i++)
        strcat(pattern, "*a**/");
    strcat(pattern, "b");
    for (int i = 0; i < 4000; i++)
        path[i] = i % 20 == 19 ? '/' : 'a';
    path[4000] = '\0';
    assert_false(matches(pattern, path));
    memset(path, 'a', 4000);
    assert_false(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", path));
    pattern[0] = '\0';
    for (int i = 0; i < 60; i++)
        strcat(pattern, "**/*a/");
    strcat(pattern, "b");
    for (int i = 0; i < 4000; i++)
        path[i] = i % 2 ? '/' : 'a';
    assert_false(matches(pattern, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_matches_not),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_many_stars_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
