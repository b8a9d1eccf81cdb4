// SPDX-License-Identifier: Apache-2.0
// File name patterns: what matches, what does not, what is refused, and that none is slow.
#include "core/text/glob.h"

#include "check.h"

static bool matches_by(enum glob_unit unit, const char *pattern, const char *path)
{
    struct error error = {0};
    struct glob *glob = glob_compile(pattern, unit, &error);
    if (!glob)
        fail_msg("%s: %s", pattern, error.message);
    bool same = glob_match(glob, path);
    glob_free(glob);
    return same;
}

static bool matches(const char *pattern, const char *path)
{
    return matches_by(GLOB_CHARACTERS, pattern, path);
}

// A pattern, the paths that it matches and those that it does not, apart by blanks.
static const struct {
    const char *pattern, *matching, *others;
} cases[] = {
    {"*.c", "a.c src/deep/a.c", "a.cc a.c/b"},
    {"*", ".hidden", ""},
    {"a?c", "abc a\303\244c a\377c", "ac"},
    {"[a-c]x", "bx", "dx"},
    {"[!a-c]x", "dx", "ax"},
    {"[^a]", "b", "a"},
    {"[]]", "]", ""},
    {"[]-a]", "^", ""},
    {"[a-]", "-", ""},
    {"[\\]]", "]", ""},
    {"\\*", "*", "x"},
    {"*.{c,h}", "x.h", "x.d"},
    {"{a,b{c,d}}e", "bde", ""},
    {"{,a}b", "b", ""},
    {"{a}", "a", ""},
    {"a/{,b}", "a/b", ""},
    {"{,a}", "a", "b"},
    {"a**/b", "axx/b", "a/x/b"},
    {"src/*.c", "src/a.c", "src/x/a.c lib/src/a.c"},
    {"src/**/*.c", "src/a.c src/x/y/a.c", "src/x.d/y"},
    {"src/**", "src/x/y", "src srcs/a"},
    {"a/***/b", "a/b a/x/y/b", "axb"},
    {"**/a", "a x/y/a", "x/ya"},
    {"**/x/**/a", "b/x/c/x/a", ""},
    {"a/**/b/*c/d", "a/b/1/b/2c/d", ""},
    {"x/{a,b/c}/d", "x/b/c/d", ""},
    {"a*b*c", "abxbc", ""},
    {"a**c", "abc", "a/c"},
    {"[\xc3\xa4-\xc3\xbc]", "\xc3\xb6", ""},
    {"[{]", "{", ""},
    {"[,]{[,],b}", ",,", ""},
    {"a,b", "a,b", ""},
    {"\\{a\\}", "{a}", ""},
    {"A", "A", "a"},
    {"a/?", "a/b", "a//"},
    {"a/b", "a/b", "a/b/c"},
    {"./a/*.c", "a/b.c", "x/a/b.c a/b/c.c"},
    {"././*.c", "b.c", "a/b.c"},
    {"{./a,b}/*", "a/x b/x", "c/a/x"},
};

static void check_each(const char *pattern, const char *paths, bool wanted)
{
    char list[100], *rest = NULL;
    strcpy(list, paths);
    for (char *path = strtok_r(list, " ", &rest); path; path = strtok_r(NULL, " ", &rest))
        if (matches(pattern, path) != wanted)
            fail_msg("%s %s %s", pattern, wanted ? "does not match" : "matches", path);
}

static void test_matches(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_each(cases[i].pattern, cases[i].matching, true);
        check_each(cases[i].pattern, cases[i].others, false);
    }
}

// As git: "?" and a set are one byte, of which an accented letter has two.
static void test_by_bytes(void **state)
{
    assert_true(matches("a?c", "a\303\244c"));
    assert_false(matches_by(GLOB_BYTES, "a?c", "a\303\244c"));
    assert_true(matches_by(GLOB_BYTES, "a??c", "a\303\244c"));
    assert_true(matches("[^a]c", "\303\244c"));
    assert_false(matches_by(GLOB_BYTES, "[^a]c", "\303\244c"));
    assert_true(matches_by(GLOB_BYTES, "[^a]c", "\344c"));
    assert_true(matches_by(GLOB_BYTES, "\344*", "\344c"));
    assert_true(matches_by(GLOB_BYTES, "**/\303\244", "a/b/\303\244"));
}

static void test_malformed(void **state)
{
    static const char *const patterns[] = {
        "",    "[a",    "[",  "[]", "[!]", "{a",   "a}",     "{a,{b}",
        "a\\", "[z-a]", "/a", "a/", "{[}", "[a\\", "{a,b\\", "{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}",
        NULL};
    for (size_t i = 0; patterns[i]; i++) {
        struct error error = {0};
        if (glob_compile(patterns[i], GLOB_CHARACTERS, &error))
            fail_msg("%s was taken", patterns[i]);
        assert_string_equal(error.code, "invalid_glob");
        assert_non_null(error.message);
        error_clear(&error);
    }
}

// Made one after the other, each of 4 KB, the patterns between the first and its 512 alternatives would take minutes.
static void test_many_braces_end(void **state)
{
    char pattern[4000] = "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}";
    for (size_t at = strlen(pattern); at + 3 < sizeof pattern; at += 3)
        memcpy(pattern + at, "{c}", 3);
    assert_null(glob_compile(pattern, GLOB_CHARACTERS, NULL));
}

// With going back to every star this would take longer than the universe lasts.
static void test_many_stars_end(void **state)
{
    char pattern[600] = "", path[4001] = "";
    for (int i = 0; i < 60; i++)
        strcat(pattern, "*a**/");
    strcat(pattern, "b");
    for (int i = 0; i < 4000; i++)
        path[i] = i % 20 == 19 ? '/' : 'a';
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matches), cmocka_unit_test(test_by_bytes),
                                       cmocka_unit_test(test_malformed), cmocka_unit_test(test_many_braces_end),
                                       cmocka_unit_test(test_many_stars_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
