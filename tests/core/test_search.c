// SPDX-License-Identifier: Apache-2.0
// Regular expressions over files: what is found, that matching a whole text finds the same as matching line by line,
// and that no pattern and no file takes memory or time without bound.
#include "core/base/cleanup.h"

#include "check.h"
#include "core/base/interrupt.h"
#include "core/search/search_internal.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define BAD "\xEF\xBF\xBD" // what stands for a byte that is no UTF-8

static struct search_regex *compile(const char *pattern, bool ignore_case)
{
    struct error error = {0};
    struct search_regex *regex = search_compile(pattern, strlen(pattern), ignore_case, &error);
    if (!regex)
        fail_msg("%s: %s", pattern, error.message);
    return regex;
}

static int file_of(const void *bytes, size_t size)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t count = write(fd, (const char *)bytes + done, size - done);
        assert_true(count > 0);
        done += (size_t)count;
    }
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static struct search_results unlimited(void)
{
    return (struct search_results){.max_matches = UINT64_MAX, .max_bytes = UINT64_MAX};
}

// Searches bytes with limits set in *results; 0 or -1.
static int search(const char *pattern, const void *bytes, size_t size, struct search_results *results,
                  struct error *error)
{
    struct search_regex *regex = compile(pattern, false);
    cleanup_fd int fd = file_of(bytes, size);
    int result = search_descriptor(regex, fd, "f", results, error);
    search_regex_free(regex);
    return result;
}

// What is found, as "LINE:TEXT|LINE:TEXT|"; the caller's to free.
static char *found(const char *pattern, const char *bytes, size_t size)
{
    struct search_results results = unlimited();
    struct error error = {0};
    char *text;
    size_t length;
    if (search(pattern, bytes, size, &results, &error) < 0)
        fail_msg("%s: %s", pattern, error.message);
    FILE *out = open_memstream(&text, &length);
    for (char *line = results.shown.data, *end = line + results.shown.size, *next; line < end; line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        fwrite(line + 2, 1, (size_t)(next - line - 2), out); // without "f:"
        fputc('|', out);
    }
    fclose(out);
    search_results_free(&results);
    return text;
}

static void expect(const char *pattern, const char *bytes, const char *wanted)
{
    char *text = found(pattern, bytes, strlen(bytes));
    if (strcmp(text, wanted) != 0)
        fail_msg("%s: found %s, wanted %s", pattern, text, wanted);
    free(text);
}

static void test_lines(void **state)
{
    expect("b", "a\nb\nbb\n", "2:b|3:bb|");
    expect("b", "a\nb", "2:b|");
    expect("b", "", "");
    expect("^", "", "");
    expect("^$", "\n", "1:|");
    expect("^$", "a\n\n", "2:|");
    expect("^$", "a\n\n\nb\n\n", "2:|3:|5:|");
    expect("", "a\nb\n", "1:a|2:b|");
    expect("x*", "a\n\nb", "1:a|2:|3:b|");
    expect("^b$", "ab\nb\nba\n", "2:b|");
    expect("a.*b.*c", "abc abc\n", "1:abc abc|");
    expect("\\Ab\\z", "a\nb\n", "2:b|");
    expect("(?<!^)b", "b\nab\n", "2:ab|");
    expect("\xc3\xa4.\xc3\xbc", "\xc3\xa4\xc3\xb6\xc3\xbc\n", "1:\xc3\xa4\xc3\xb6\xc3\xbc|");
    expect("^...$", "\xc3\xa4\xc3\xb6\xc3\xbc\n", "1:\xc3\xa4\xc3\xb6\xc3\xbc|");
}

static void test_nothing_reaches_over_a_line_end(void **state)
{
    expect("a\\s+b", "a\nb\na b\n", "3:a b|");
    expect("a[^x]b", "a\nb\n", "");
    expect("a[^]]b", "a\nb\na-b\n", "3:a-b|");
    expect("a[^-]b", "a\nb\na+b\n", "3:a+b|");
    expect("a\\Wb", "a\nb\n", "");
    expect("a\\nb", "a\nb\n", "");
    expect("a(?s).b", "a\nb\n", "");
    expect("a[\\s]b", "a\nb\na\tb\n", "3:a\tb|");
    expect("a[[:space:]]b", "a\nb\na\tb\n", "3:a\tb|");
    expect("a[^[:alpha:]]b", "a\nb\na\tb\n", "3:a\tb|");
    expect("a[\\x00-\\x20]b", "a\nb\na\tb\n", "3:a\tb|");
    expect("a(?!\\s*b)", "a\nb\na b\n", "1:a|");
    expect("a[^b]*+$", "axx\nbb\nab\n", "1:axx|");
    expect("a\\s*+$", "a \n\nb\n", "1:a |");
    expect("^\\s*$", "a\n\n \nb\n", "2:|3: |");
}

// PCRE2 10.42's JIT misses lines where it backtracks into an alternative that matches nothing.
static void test_empty_alternatives(void **state)
{
    expect("(?:a|)\\t*(?:a|)\\S", "a\n\nab\n", "1:a|3:ab|");
    expect("(s|)\\s*(s|)[^\\s]", "s\n", "1:s|");
    expect("(?:a||b)\\s*a", "a\n", "1:a|");
    expect("(?:a|^)\\t*a", "a\n", "1:a|");
    expect("(?:a|\\b)\\s*a", "a\n", "1:a|");
    expect("(?:a|(?:|b))\\s*a", "a\n", "1:a|");
}

// Lines without the text with which a pattern ends are passed over; what only looks like such a text is none.
static void test_patterns_that_end_in_plain_text(void **state)
{
    const char *text = "abc\nxabc abc\nXABC\nx.abcd\nAbcx\n\xc3\xa4\xc3\xb6\xc3\xbc\n";
    expect("\\w+abc", text, "2:xabc abc|");
    expect("^\\w+ abc", text, "2:xabc abc|");
    expect("(?i)x+abc", text, "2:xabc abc|3:XABC|");
    expect("(?i:x)ABC", text, "3:XABC|");
    expect("\\W\\Qabcd", text, "4:x.abcd|");
    expect("\\x41bc", text, "5:Abcx|");
    expect("(.)bcx|XABC", text, "3:XABC|5:Abcx|");
    expect(".\xc3\xb6\xc3\xbc", text, "6:\xc3\xa4\xc3\xb6\xc3\xbc|");
    expect("x?\nabc", text, "");
    expect("\\w+abc", "xabc\r\nabc\r\n\377abc xabc", "1:xabc|3:" BAD "abc xabc|");
}

static void test_carriage_returns(void **state)
{
    expect("b$", "b\r\na\r\nb\r\n", "1:b|3:b|");
    expect("^.$", "b\r\nab\r\n", "1:b|");
    expect("\\s", "b\r\na b\r\n", "2:a b|");
    expect("a", "x\na\r\na", "2:a|3:a|");
    expect("a.b", "a\rb\r\n", "1:a\rb|");
    expect("^$", "\r\n\r\n", "1:|2:|");
}

static void test_broken_utf8(void **state)
{
    expect("b", "\377b\303\n\342\202b\nb\n", "1:" BAD "b" BAD "|2:" BAD "b|3:b|");
    expect("a.b", "a\377b\naxb\n", "2:axb|");
    expect("^[^x]+b$", "\377\377b\nab\n", "2:ab|");
    expect("^[^x]+b$", "\377\377b\r\nab\r\n", "2:ab|");
}

static void test_binary_files(void **state)
{
    char bytes[9000];
    memset(bytes, 'a', sizeof bytes);
    bytes[8191] = '\0';
    char *text = found("a", bytes, sizeof bytes);
    assert_string_equal(text, "");
    free(text);
    bytes[8191] = '\n', bytes[8192] = '\0';
    text = found("^a", bytes, 8194);
    assert_int_equal(text[0], '1');
    free(text);
    struct search_results results = unlimited();
    struct error error = {0};
    assert_int_equal(search("a", "\0a", 2, &results, &error), 0);
    assert_int_equal(results.files_searched, 0);
}

static void test_long_lines_are_cut_around_the_match(void **state)
{
    enum { SIZE = 100000 };
    char *line = malloc(SIZE);
    for (size_t i = 0; i + 1 < SIZE; i += 2)
        memcpy(line + i, "\xc3\xa4", 2);
    for (size_t at = 0; at < SIZE; at += 9999) {
        line[at] = 'x';
        char *text = found("x", line, SIZE);
        assert_in_range(strlen(text), 900, 1100);
        assert_non_null(strchr(text, 'x'));
        assert_true((strstr(text, ":...") != NULL) == (at > 200));
        assert_true((strstr(text, "...|") != NULL) == (at < SIZE - 1000));
        free(text);
        memcpy(line + at - at % 2, "\xc3\xa4", 2);
    }
    free(line);
}

static void test_invalid_patterns(void **state)
{
    static const char *const patterns[] = {"(",    "a)",   "[a",   "*", "a{2,1}", "\\", "(?<n>a)(?<n>b)",
                                           "\xff", "a\\C", "(?z)", NULL};
    for (size_t i = 0; patterns[i]; i++) {
        struct error error = {0};
        if (search_compile(patterns[i], strlen(patterns[i]), false, &error))
            fail_msg("%s was taken", patterns[i]);
        assert_string_equal(error.code, "invalid_pattern");
        assert_non_null(strstr(error.message, "at byte"));
        error_clear(&error);
    }
}

// A catastrophic pattern: a clear error that names the place, at once, together and line by line.
static void test_costly_patterns(void **state)
{
    static const char *const patterns[] = {
        "(a+)+$", "(a+)+\\z", "(?:a|aa)+$", "(.*)*(.*)*(.*)*(.*)*[xy]", "(a*)*(a*)*\\1[xy]", NULL};
    char bytes[203] = "b\nb\n";
    memset(bytes + 4, 'a', 198);
    bytes[201] = 'b', bytes[202] = '\n';
    for (size_t i = 0; patterns[i]; i++) {
        struct search_results results = unlimited();
        struct error error = {0};
        if (search(patterns[i], bytes, sizeof bytes, &results, &error) == 0)
            fail_msg("%s ended", patterns[i]);
        assert_string_equal(error.code, "pattern_too_costly");
        assert_non_null(strstr(error.message, "on file f line 3;"));
        error_clear(&error);
        search_results_free(&results);
    }
}

// The exit status of a child that runs the function, for what that sets stays; -1 where a signal ended it.
static int status_of_child(int (*run)(const char *pattern, const char *filling), const char *pattern,
                           const char *filling)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(run(pattern, filling));
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum { ENDED, TIMED_OUT, TOO_COSTLY, FAILED };

// Searches 10 MB with 300 ms to the deadline. After 3 s of CPU time the kernel ends it.
static int search_until_deadline(const char *pattern, const char *filling)
{
    enum { SIZE = 10 << 20 };
    size_t period = strlen(filling);
    char *bytes = malloc(SIZE);
    for (size_t at = 0; at < SIZE; at++)
        bytes[at] = filling[at % period];
    struct search_results results = unlimited();
    struct error error = {0};
    setrlimit(RLIMIT_CPU, &(struct rlimit){3, 3});
    interrupt_install(); // signals are this process's own
    interrupt_set_deadline(300);
    if (search(pattern, bytes, SIZE, &results, &error) == 0)
        return ENDED;
    if (strcmp(error.code, "timeout") == 0)
        return TIMED_OUT;
    return strcmp(error.code, "pattern_too_costly") == 0 ? TOO_COSTLY : FAILED;
}

// Each pattern over a line that it goes back in; with SBA_LONG in the environment, over the lines of the others too.
static void test_the_deadline_holds_on_long_lines(void **state)
{
    static const char *const cases[][2] = {
        {"(a|b)*c", "ab"},          {"\\w+\\s*=\\s*NULL", "x = foo ab "},
        {".*foo.*bar", "foo a, "},  {".*\\w+\\s*=", "a"},
        {"[a-z]+x[a-z]+y", "ab"},   {"(.*),(.*),(.*);", "foo a, "},
        {"(?i).*fOo.*", "foo a, "}, {"(\\w+\\s?)+;", "x = foo ab "},
        {"a.*b.*c.*d", "foo a, "},  {"(?=.*x)a", "a"},
        {"(?<=b)a+\\W", "ab"},
    };
    const size_t count = sizeof cases / sizeof *cases;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            if (i != j && !getenv("SBA_LONG"))
                continue;
            int status = status_of_child(search_until_deadline, cases[i][0], cases[j][1]);
            if (status != ENDED && status != TIMED_OUT && status != TOO_COSTLY)
                fail_msg("%s over \"%s\": status %d", cases[i][0], cases[j][1], status);
        }
}

static int search_without_jit(const char *pattern, const char *filling)
{
    enum { PR_SET_MDWE_ = 65, REFUSE_EXEC_GAIN = 1 };
    if (prctl(PR_SET_MDWE_, REFUSE_EXEC_GAIN, 0, 0, 0) < 0)
        return 2;
    if (mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        return 3;
    test_lines(NULL);
    test_nothing_reaches_over_a_line_end(NULL);
    test_broken_utf8(NULL);
    test_costly_patterns(NULL);
    return 0;
}

// Where the kernel refuses memory that is writable and executable, the same is found.
static void test_without_jit(void **state)
{
    int status = status_of_child(search_without_jit, NULL, NULL);
    if (status == 2)
        skip(); // Linux before 6.3
    assert_int_equal(status, 0);
}

// Lines that lie across the pieces in which a file is read keep their numbers and their text.
static void test_files_larger_than_a_piece(void **state)
{
    enum { LINES = 300000 };
    char *bytes;
    size_t size;
    FILE *out = open_memstream(&bytes, &size);
    for (int i = 1; i <= LINES; i++)
        fprintf(out, "line %d %s\n", i, i % 99991 == 0 ? "here" : "nothing");
    fclose(out);
    expect("here", "", "");
    char *text = found("here$", bytes, size);
    assert_string_equal(text, "99991:line 99991 here|199982:line 199982 here|299973:line 299973 here|");
    free(text);
    text = found("(?s)here\\z", bytes, size - 1);
    assert_string_equal(text, "99991:line 99991 here|199982:line 199982 here|299973:line 299973 here|");
    free(text);
    free(bytes);
}

// Searches a line of 200 MB between two short ones.
static int search_endless_line(const char *pattern, const char *filling)
{
    cleanup_fd int fd = memfd_create("test", MFD_CLOEXEC);
    static char block[1 << 20];
    memset(block, *filling, sizeof block);
    int failed = write(fd, "b\n", 2) != 2;
    for (int i = 0; i < 200 && !failed; i++)
        failed = write(fd, block, sizeof block) != sizeof block;
    failed |= write(fd, "\na\n", 3) != 3 || lseek(fd, 0, SEEK_SET) != 0;
    struct search_results results = unlimited();
    struct error error = {0};
    struct search_regex *regex = compile(pattern, false);
    return failed || search_descriptor(regex, fd, "f", &results, &error) != 0 || results.count != 2 ||
           strncmp(results.shown.data, "f:2:", 4) != 0 ||
           !memmem(results.shown.data, results.shown.size, "\nf:3:", 5) || regex->piece.capacity > 100 << 20;
}

// A line without end is searched in parts: memory is bounded, and the line is reported once.
static void test_a_line_longer_than_memory_allows(void **state)
{
    assert_int_equal(status_of_child(search_endless_line, "a", "a"), 0);
}

// Random patterns of every kind of piece over random lines: the pattern over the whole text finds what the
// original finds line by line. A carriage return in the text makes the search go line by line.
static void test_together_is_as_line_by_line(void **state)
{
    static const char *const pieces[][10] = {
        {"a", "b", " ", ".", "^", "$", "\\s", "\\S", "\\w", "\\W"},
        {"\\d", "\\D", "\\b", "\\B", "[^a]", "[^]a]", "[^-a]", "[a ]", "[^\\s]", "[\\s-]"},
        {"[^\\w ]", "[[:alpha:] ]", "[^[:space:]]", "(a|b)", "(?:a|)", "(?=b)", "(?!b)", "(?<=a)", "(?<!a)", "(?>a*)"},
        {"*", "+", "?", "*+", "*?", "{2}", "{0,2}+", "|", "\\h", "\\t"},
        {"(?i:A)", "aab", "ba ", "a]-", "[\\]a]", "[^\\n]", "\\.", "[a-b]", "\\1", "(?i)"},
    };
    static const char alphabet[] = "aabb  \t-].\n\n\nA";
    int together = 0;
    srand(7);
    for (int round = 0; round < 4000; round++) {
        char pattern[200] = "", text[61], with_return[130];
        for (int i = rand() % 6; i >= 0; i--)
            strcat(pattern, pieces[rand() % 5][rand() % 10]);
        struct error error = {0};
        struct search_regex *regex = search_compile(pattern, strlen(pattern), false, &error);
        error_clear(&error);
        if (!regex)
            continue;
        together += regex->lines != NULL;
        search_regex_free(regex);
        size_t size = (size_t)rand() % 60, out = 0;
        for (size_t i = 0; i < size; i++)
            text[i] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
        text[size] = '\0';
        for (size_t i = 0; i < size; i++) {
            if (text[i] == '\n')
                with_return[out++] = '\r';
            with_return[out++] = text[i];
        }
        char plain[220] = "(*UTF)"; // a pattern that begins so is taken as it is, and always line by line
        strcat(plain, pattern);
        bool returns = rand() % 2;
        char *one = found(pattern, text, size),
             *other = found(plain, returns ? with_return : text, returns ? out : size);
        if (strcmp(one, other) != 0)
            fail_msg("pattern %s on \"%s\": together %s, line by line %s", pattern, text, one, other);
        free(one);
        free(other);
    }
    assert_true(together > 1000);
}

int main(void)
{
    interrupt_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_nothing_reaches_over_a_line_end),
        cmocka_unit_test(test_empty_alternatives),
        cmocka_unit_test(test_patterns_that_end_in_plain_text),
        cmocka_unit_test(test_carriage_returns),
        cmocka_unit_test(test_broken_utf8),
        cmocka_unit_test(test_binary_files),
        cmocka_unit_test(test_long_lines_are_cut_around_the_match),
        cmocka_unit_test(test_invalid_patterns),
        cmocka_unit_test(test_costly_patterns),
        cmocka_unit_test(test_the_deadline_holds_on_long_lines),
        cmocka_unit_test(test_without_jit),
        cmocka_unit_test(test_files_larger_than_a_piece),
        cmocka_unit_test(test_a_line_longer_than_memory_allows),
        cmocka_unit_test(test_together_is_as_line_by_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
