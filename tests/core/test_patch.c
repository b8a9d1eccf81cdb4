// SPDX-License-Identifier: Apache-2.0
// core/patch: what is parsed, what is refused, where hunks go, and what is said when they go nowhere.
#include "check_patch.h"
#include "core/base/interrupt.h"

#include <signal.h>

#define BASE "a\nb\nc\nd\ne\nf\ng\nh\n"

static void finds_the_place(void **state)
{
    gives(X "@@ -1,4 +1,4 @@\n a\n-b\n+B\n c\n d\n", BASE, "a\nB\nc\nd\ne\nf\ng\nh\n");
    assert_int_equal(report.offset + report.fuzz + report.recounted, 0);
    assert_int_equal(report.added * 10 + report.removed, 11);
    gives(X "@@ -5,3 +5,3 @@\n b\n-c\n+C\n d\n", BASE, "a\nb\nC\nd\ne\nf\ng\nh\n");
    assert_int_equal(report.offset, 3);
    gives(X "@@ -3,3 +3,3 @@\n X\n-d\n+D\n e\n", BASE, "a\nb\nc\nD\ne\nf\ng\nh\n");
    assert_int_equal(report.fuzz, 1);
    gives(X "@@ -3,5 +3,5 @@\n X\n Y\n-d\n+D\n e\n f\n", "a\nb\nc\nd\ne\nf\n", "a\nb\nc\nD\ne\nf\n");
    assert_int_equal(report.fuzz, 2);
    refuses(X "@@ -3,7 +3,7 @@\n X\n Y\n Z\n-d\n+D\n e\n f\n g\n", BASE, "patch_mismatch");
}

#define GIT(old_blob)                                                                                                  \
    "diff --git a/x b/x\nindex " old_blob "..01e79c3 100644\n--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+1\n+2\n"

static void inserts_at_the_top(void **state)
{
    gives(GIT("d00491f"), "a\n", "1\n2\na\n");
    refuses(GIT("d00491f"), "1\n2\n", "already_applied");
    refuses(GIT("e69de29"), "a\n", "already_exists"); // of an empty file
    gives(GIT("e69de29"), "", "1\n2\n");
    refuses(X "@@ -0,0 +1 @@\n+1\n", "a\n", "already_exists");
}

static void prefers_the_nearest_and_then_the_later(void **state)
{
    gives(X "@@ -3 +3 @@\n-a\n+A\n", "a\nb\nb\nb\na\n", "a\nb\nb\nb\nA\n");
    gives(X "@@ -2 +2 @@\n-a\n+A\n", "a\nb\nb\nb\na\n", "A\nb\nb\nb\na\n");
}

static void keeps_hunks_in_order(void **state)
{
    gives(X "@@ -2 +2 @@\n-a\n+A\n@@ -3 +3 @@\n-a\n+B\n", "x\na\na\n", "x\nA\nB\n");
    refuses(X "@@ -2 +2 @@\n-b\n+B\n@@ -1 +1 @@\n-a\n+A\n", "a\nb\n", "hunk 2 of 2");
    gives(X "@@ -10 +10 @@\n-e\n+E\n@@ -11 +11 @@\n-f\n+F\n", BASE, "a\nb\nc\nd\nE\nF\ng\nh\n");
    assert_int_equal(report.offset, 5);
}

static void holds_to_beginning_and_end(void **state)
{
    refuses(X "@@ -2,3 +2,4 @@\n b\n c\n d\n+e\n", "a\nb\nc\nd\nX\n",
            "patch_mismatch"); // less context after than before
    gives(X "@@ -2,3 +2,4 @@\n b\n c\n d\n+e\n", "a\nb\nc\nd\n", "a\nb\nc\nd\ne\n");
    refuses(X "@@ -1,3 +1,4 @@\n+0\n a\n b\n c\n", "X\na\nb\nc\n", "patch_mismatch");
    gives(X "@@ -1,3 +1,4 @@\n+0\n a\n b\n c\n", "a\nb\nc\n", "0\na\nb\nc\n");
}

#define NO_NEWLINE "\\ No newline at end of file\n"

static void takes_missing_newlines_exactly(void **state)
{
    gives(X "@@ -1 +1 @@\n-a\n" NO_NEWLINE "+b\n" NO_NEWLINE, "a", "b");
    refuses(X "@@ -1 +1 @@\n-a\n" NO_NEWLINE "+b\n" NO_NEWLINE, "a\n",
            "expected \"a\" without a newline at line 1, found \"a\" with one");
    gives(X "@@ -1 +1 @@\n-a\n" NO_NEWLINE "+a\n", "a", "a\n");
    gives(X "@@ -1 +1 @@\n-a\n+a\n" NO_NEWLINE, "a\n", "a");
    refuses(X "@@ -1,0 +2 @@\n+b\n", "a", "'\\ No newline at end of file' is missing");
    refuses(X "@@ -1 +1,2 @@\n+0\n" NO_NEWLINE " a\n", "a\n", "line 6 of the diff");
    refuses(X "@@ -1 +1 @@\n-a\n+0\n" NO_NEWLINE, "a\nb\n", "'\\ No newline at end of file' is missing or misplaced");
    refuses(X "@@ -1 +1,3 @@\n a\n+\n" NO_NEWLINE "+0\n", "a\n", "line 6 of the diff");
}

static void never_mixes_line_ends(void **state)
{
    gives(X "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n");
    assert_int_equal(report.line_ends, 'c');
    gives("--- a/x\r\n+++ b/x\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+B\r\n", "a\nb\nc\n", "a\nB\nc\n");
    assert_int_equal(report.line_ends, 'l');
    gives(X "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n", "a\r\nb\r\n", "a\r\nB\r\n");
    assert_int_equal(report.line_ends, 0);
    gives(X "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n", "a\r\nb\r\n", "a\r\nb\n"); // the change itself
    gives(X "@@ -2,0 +3 @@\n+c\n", "a\r\nb\r\n", "a\r\nb\r\nc\r\n");
    refuses(X "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "a\r\nb\r\nc\n", "patch_mismatch");
    gives("--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n\\ No newline at end of file\r\n+b\r\n", "a", "b\r\n");
}

static void recounts_wrong_counts(void **state)
{
    gives(X "@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n", BASE, "a\nB\nc\nd\ne\nf\ng\nh\n");
    assert_int_equal(report.recounted, 1);
    gives(X "@@ -1 +1 @@\n a\n-b\n+B\n c\n", BASE, "a\nB\nc\nd\ne\nf\ng\nh\n");
    assert_int_equal(report.recounted, 1);
    gives("--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n+c\n", "", "a\nb\nc\n"); // git and patch cut it short
    gives(X "@@ -1,2 +1,2 @@\n-a\n+A\n\n-c\n+C\n", "a\n\nc\n", "A\n\nC\n");
    gives(X "@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", BASE,
          "a\nB\nc\nd\ne\nf\ng\nh\n");
    gives(X "@@ -1,4 +1,4 @@\n a\n-b\n+B\n\n-- \n2.39.2\n\n", BASE, "a\nB\nc\nd\ne\nf\ng\nh\n");
}

static void loses_no_line(void **state)
{
    refuses(X "@@ -1,4 +1,4 @@\n a\n-b\n+B\nc\n d\n", BASE, "line 7 of the diff: neither a line of the hunk");
    refuses(X "@@ -1,2 +1,2 @@\n a\n-b\n+B\nc\n+d\n", BASE, "line 8 of the diff: this looks like a part of a hunk");
    refuses(X "@@ -1,2 +1,2 @@\n a\n-b\n+B\nc\n@@ -5 +5 @@\n-e\n+E\n", BASE, "line 8 of the diff");
    refuses(X "@@ -1 +1 @@\n-a\n+A\n\nwords\n\n-b\n", BASE, "line 9 of the diff: this looks like");
    refuses(X "@@ -1 +1 @@\n a\n", BASE, "changes nothing");
    gives(X "@@ -1 +1 @@\n-a\n+A\n-- \n2.39.2\n", BASE, "A\nb\nc\nd\ne\nf\ng\nh\n");
    gives("Binary files are left out.\n\n" X "@@ -1 +1 @@\n-a\n+A\n", BASE, "A\nb\nc\nd\ne\nf\ng\nh\n");
    gives(X "@@ -1 +1 @@\n-a\n+A\n```\n- that was it\n", BASE, "A\nb\nc\nd\ne\nf\ng\nh\n");
}

static void takes_context_without_its_blank(void **state)
{
    gives(X "@@ -1,3 +1,3 @@\n a\n\n-c\n+C\n", "a\n\nc\n", "a\n\nC\n");
    gives(X "@@ -1 +1 @@\n-a\n+A", "a\n", "A\n"); // the diff's own last newline is missing
}

static void survives_absurd_numbers(void **state)
{
    refuses(X "@@ -98765432109876543210 +98765432109876543210 @@\n-a\n+b\n", "a\n", "larger than any file");
    refuses(X "@@ -1,4294967297 +1 @@\n-a\n+b\n", "a\n", "larger than any file");
    refuses(X "@@ -18446744073709551617 +1 @@\n-a\n+b\n", "a\n", "larger than any file"); // 2^64 and 1
    gives(X "@@ -2147483648 +2147483648 @@\n-a\n+b\n", "a\n", "b\n");
    gives(X "@@ -1,2147483648 +1,2147483648 @@\n-a\n+b\n", "a\n", "b\n");
    refuses(X "@@ -2147483648,0 +1 @@\n+b\n", "a\n", "adds after line 2147483648");
    refuses(X "@@ -1,1 +1,-1 @@\n-a\n+b\n", "a\n", "a hunk begins with");
    refuses(X "@@ -1 @@\n-a\n+b\n", "a\n", "a hunk begins with");
}

static void refuses_what_is_no_unified_diff(void **state)
{
    refuses("", "", "no change found");
    refuses("Dear reader,\n- this is\n+ no diff\n", "", "no change found");
    refuses("1,2d\na\n!touch pwned\n.\nw\n", "", "an ed script is not a unified diff");
    refuses("3c3\n< a\n---\n> b\n", "", "a normal diff is not");
    refuses("*** a/x\n--- b/x\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n", "", "a context diff is not");
    refuses("diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 0\n", "", "binary_patch: line 3");
    refuses("diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n", "", "binary_patch");
    refuses("Binary files old/x and new/x differ\n", "", "binary_patch");
    refuses("diff --cc x\n@@@ -1,1 -1,1 +1,1 @@@\n- a\n", "", "combined diff");
    refuses("@@ -1 +1 @@\n-a\n+b\n", "a\n", "which file is it for");
    refuses("--- a/x\n+++ b/x\n", "", "a hunk must begin");
    refuses("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+a\n", "", "which file it is about");
    refuses("diff --git a/x b/x\nnew file mode 160000\n", "", "submodule");
    refuses("diff --git a/x b/x\nnew file mode 104755\n", "", "a mode must be");
    refuses("diff --git a/x b/x\nrename from x\n", "", "only one of the two names");
    refuses("diff --git /dev/null b/x\nrename from x\n", "", "only one of the two names");
    refuses("diff --git a/x b/y\nrename from x\nrename to y\nnew file mode 100644\n", "", "exclude each other");
    refuses("diff --git a/x b/x\n--- a/x\n@@ -1 +1 @@\n-a\n+b\n", "a\n", "only one of its lines");
    refuses("diff --git a/x b/x\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "a\n", "is not the one");
    refuses("--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "", "the new file above takes lines");
    refuses("--- a/x\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "", "the deleted file above still has lines");
}

static void says_what_differs(void **state)
{
    refuses(X "@@ -1,3 +1,3 @@\n a\n-X\n+Y\n c\n", BASE,
            "hunk 1 of 1 \"@@ -1,3 +1,3 @@\" does not fit: expected \"X\" at line 2, found \"b\"; no other place fits "
            "better");
    refuses(X "@@ -1,4 +1,4 @@\n e\n f\n-X\n+Y\n h\n", BASE,
            "expected \"e\" at line 1, found \"a\"; it fits best at line 5, where 3 of its 4 lines are found");
    refuses(X "@@ -9,2 +9,2 @@\n-X\n+Y\n Z\n", BASE,
            "at line 9, but the file has 8 lines; none of its lines are in the file");
    refuses(X "@@ -1,3 +1,3 @@\n a\n-X\n+b\n c\n", BASE,
            "already_applied: hunk 1 of 1 \"@@ -1,3 +1,3 @@\": the change is already there, at line 1");
    refuses("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", "a\n", "already_applied");
    refuses("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", "b\n", "already_exists");
    char *diff = malloc(1 << 20);
    int size = sprintf(diff, X "@@ -1 +1 @@\n-");
    memset(diff + size, 'y', (1 << 20) - 16 - size);
    strcpy(diff + (1 << 20) - 16, "\n+\033[1m\n");
    refuses(diff, BASE, "yyy...\"");
    free(diff);
}

static struct patch_file only_file(const char *diff, struct patch *patch)
{
    struct error error = {0};
    if (patch_parse(diff, strlen(diff), patch, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(patch->file_count, 1);
    return patch->files[0];
}

static void names_are(const char *diff, const char *old_name, const char *new_name)
{
    struct patch patch;
    struct patch_file file = only_file(diff, &patch);
    const char *old = file.from ? file.from : file.old_name, *new = file.to ? file.to : file.new_name;
    assert_string_equal(old ? old : "-", old_name);
    assert_string_equal(new ? new : "-", new_name);
    patch_free(&patch);
}

#define HUNK "@@ -1 +1 @@\n-a\n+b\n"

static void shows_a_line_without_what_a_terminal_obeys(void **state)
{
    refuses(X "@@ -1 +1 @@\n-a\n+b\n", "\033[2J\tx\n", "found \"?[2J x\"");
}

static void reads_names(void **state)
{
    names_are("--- a/x y\t2005-04-12 02:14:06.000 -0700\n+++ b/x y\t2005-04-12\n" HUNK, "a/x y", "b/x y");
    names_are("--- a/x 2005-04-12 02:14:06 -07:00\n+++ b/x\n" HUNK, "a/x", "b/x");
    names_are("--- \"a/\\303\\251\\n\\\"\"\n+++ \"b/\\303\\251\\n\\\"\"\n" HUNK, "a/\303\251\n\"", "b/\303\251\n\"");
    names_are("diff --git a/x y b/x y\nold mode 100644\nnew mode 100755\n", "a/x y", "b/x y");
    names_are("diff --git x y x y\nold mode 100644\nnew mode 100755\n", "x y", "x y");
    names_are("diff --git \"a/x\\t\" \"b/x\\t\"\nold mode 100644\nnew mode 100755\n", "a/x\t", "b/x\t");
    names_are("diff --git a/x b/x\nnew file mode 100644\n", "-", "b/x");
    names_are("diff --git a/x b/x\ndeleted file mode 100644\n", "a/x", "-");
    names_are("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", "x", "y");
    names_are("diff --git a/x b/y\r\ncopy from x\r\ncopy to y\r\n", "x", "y");
    refuses("--- \"a/x\\000\"\n+++ b/x\n" HUNK, "", "no file name can be read here");
    refuses("--- \"a/x\n+++ b/x\n" HUNK, "", "no file name can be read here");
    refuses("--- \t\n+++ b/x\n" HUNK, "", "no file name can be read here");
    refuses("--- \"\"\n+++ b/x\n" HUNK, "", "no file name can be read here");
    static const char nul[] = "--- a/x\0y\n+++ b/x\n" HUNK;
    assert_null(apply(nul, sizeof nul - 1, "a\n", 2));
    assert_non_null(strstr(message, "no file name can be read here"));
}

static void knows_the_epoch(void **state)
{
    static const struct {
        const char *old, *new;
        enum patch_action action;
    } cases[] = {
        {"1970-01-01 00:00:00.000000000 +0000", "2020-01-01 00:00:00", PATCH_CREATED},
        {"1970-01-01 09:00:00.000000000 +0900", "2020-01-01 00:00:00", PATCH_CREATED},
        {"1969-12-31 16:00:00 -08:00", "2020-01-01 00:00:00", PATCH_CREATED},
        {"1970-01-01 00:00:00.000000001 +0000", "2020-01-01 00:00:00", PATCH_MODIFIED},
        {"1970-01-01 00:00:00 +0100", "2020-01-01 00:00:00", PATCH_MODIFIED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct patch patch;
        char diff[256];
        snprintf(diff, sizeof diff, "--- a/x\t%s\n+++ b/x\t%s\n@@ -0,0 +1 @@\n+a\n", cases[i].old, cases[i].new);
        assert_int_equal(only_file(diff, &patch).action, cases[i].action);
        patch_free(&patch);
    }
}

static void takes_bytes(void **state)
{
    static const char diff[] = X "@@ -1,2 +1,2 @@\n a\0b\n-\xff\n+\0\n";
    char *made = apply(diff, sizeof diff - 1, "a\0b\n\xff\n", 6);
    assert_non_null(made);
    assert_memory_equal(made, "a\0b\n\0\n", 7);
    free(made);
}

// 100,000 hunks, each far from where it says, over lines that are mostly the same.
static void is_fast_where_hunks_are_far(void **state)
{
    enum { HUNKS = 100000 };
    struct buffer diff = {0}, bytes = {0};
    buffer_append(&diff, X, strlen(X));
    for (int i = 0; i < HUNKS; i++) {
        char text[128];
        int size =
            snprintf(text, sizeof text, "@@ -%d,3 +%d,3 @@\n }\n-%d\n+%d!\n }\n", i % 2 ? 1 : HUNKS * 4, i, i, i);
        buffer_append(&diff, text, (size_t)size);
        size = snprintf(text, sizeof text, "}\n%d\n}\n}\n", i);
        buffer_append(&bytes, text, (size_t)size);
    }
    adds(&diff, &bytes, HUNKS);
}

// As many of the line as are one too many.
static void refuses_too_many(const char *head, const char *line, size_t most, const char *words)
{
    struct buffer diff = {0};
    buffer_append(&diff, head, strlen(head));
    for (size_t i = 0; i <= most; i++)
        buffer_append(&diff, line, strlen(line));
    assert_null(apply(diff.data, diff.size, "a\n", 2));
    if (!strstr(message, words))
        fail_msg("\"%s\" does not say \"%s\"", message, words);
    buffer_free(&diff);
}

static void is_bounded(void **state)
{
    struct error error = {0};
    struct patch patch;
    assert_int_equal(patch_parse("", PATCH_MAX_SIZE + 1, &patch, &error), -1); // nothing of it is read
    assert_string_equal(error.code, "too_large");
    error_clear(&error);
    assert_null(apply(X "@@ -1 +1 @@\n-a\n+b\n", sizeof X + 18, "", (size_t)PATCH_MAX_TARGET + 1));
    assert_non_null(strstr(message, "1024 MiB is not patched"));
    refuses_too_many("", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", PATCH_MAX_FILES, "10000 files");
    refuses_too_many(X, "@@ -1 +1 @@\n-a\n+b\n", PATCH_MAX_HUNKS, "1000000 hunks");
    refuses_too_many("--- a/x\n+++ b/", "x", PATCH_MAX_NAME_LINE, "too long to hold a file name");
}

// Last: a cancel stays.
static void stops_when_cancelled(void **state)
{
    interrupt_install();
    raise(SIGTERM);
    refuses(X "@@ -1 +1 @@\n-a\n+b\n", "a\n", "cancelled");
    refuses_too_many("", "words\n", 4096, "cancelled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_place),
        cmocka_unit_test(inserts_at_the_top),
        cmocka_unit_test(prefers_the_nearest_and_then_the_later),
        cmocka_unit_test(keeps_hunks_in_order),
        cmocka_unit_test(holds_to_beginning_and_end),
        cmocka_unit_test(takes_missing_newlines_exactly),
        cmocka_unit_test(never_mixes_line_ends),
        cmocka_unit_test(recounts_wrong_counts),
        cmocka_unit_test(loses_no_line),
        cmocka_unit_test(takes_context_without_its_blank),
        cmocka_unit_test(survives_absurd_numbers),
        cmocka_unit_test(refuses_what_is_no_unified_diff),
        cmocka_unit_test(says_what_differs),
        cmocka_unit_test(shows_a_line_without_what_a_terminal_obeys),
        cmocka_unit_test(reads_names),
        cmocka_unit_test(knows_the_epoch),
        cmocka_unit_test(takes_bytes),
        cmocka_unit_test(is_fast_where_hunks_are_far),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(stops_when_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
