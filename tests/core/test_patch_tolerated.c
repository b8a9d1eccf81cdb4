// SPDX-License-Identifier: Apache-2.0
// core/patch: what models write instead of a diff. Each liberty is said, and none is taken where two places fit.
#include "check_patch.h"

#define BASE "a\nb\nc\nd\ne\n"
#define UPDATE "*** Begin Patch\n*** Update File: x\n"
#define END "*** End Patch\n"

static void takes(const char *diff, const char *bytes, const char *wanted, unsigned tolerated)
{
    gives(diff, bytes, wanted);
    assert_int_equal(report.tolerated | whole_tolerated, tolerated);
}

static void takes_no_liberty_with_an_exact_diff(void **state)
{
    takes(X "@@ -2 +2 @@\n-b\n+B\n", BASE, "a\nB\nc\nd\ne\n", 0);
    takes("From 123 Mon\nSubject: words\n\n" X "@@ -2 +2 @@\n-b\n+B\n-- \n2.39.2\n", BASE, "a\nB\nc\nd\ne\n", 0);
    takes("diff -u x x\nIndex: x\n====\n" X "@@ -2 +2 @@\n-b\n+B\n", BASE, "a\nB\nc\nd\ne\n", 0);
    takes(X "@@ -3,1 +3,1 @@\n-b\n+B\n", "b \na\nb\n", "b \na\nB\n", 0); // not the nearer by other rules
}

static void takes_fences_and_words(void **state)
{
    takes("Sure!\n\n```diff\n" X "@@ -2 +2 @@\n-b\n+B\n```\n\n- It is done.\n", BASE, "a\nB\nc\nd\ne\n",
          PATCH_CODE_FENCE | PATCH_PROSE);
    takes("```\n" X "@@ -2,9 +2 @@\n a\n-b\n+B\n\n```\n\n- It is done.\n", BASE, "a\nB\nc\nd\ne\n",
          PATCH_CODE_FENCE | PATCH_PROSE);
    takes("```diff\n" X "@@ -2 +2 @@\n-b\n+B\n", BASE, "a\nB\nc\nd\ne\n", PATCH_CODE_FENCE); // whole though it is cut
    refuses("```diff\n" X "@@ -2,3 +2,3 @@\n-b\n+B\n", BASE, "has no other end");
    refuses(X "@@ -2,3 +2,3 @@\n-b\n+B\n```\n", BASE, "has no other end"); // or a line of the file
    refuses("```diff\n" X "@@\n-b\n+B\n", BASE, "has no other end");
}

static void keeps_fences_of_the_file(void **state)
{
    static const char text[] = "# T\n```c\nx\n```\ny\n";
    takes("```diff\n" X "@@ -1,5 +1,5 @@\n # T\n ```c\n-x\n+X\n ```\n y\n```\n", text, "# T\n```c\nX\n```\ny\n",
          PATCH_CODE_FENCE);
    takes(UPDATE "@@\n ```c\n-x\n+X\n ```\n" END, text, "# T\n```c\nX\n```\ny\n", PATCH_BEGIN_PATCH | PATCH_NO_NUMBERS);
    refuses("```diff\n" X "@@ -3,3 +3,3 @@\n-x\n+X\n```\n-y\n+Y\n```\n", text, "``` stands between");
    refuses("```diff\n" X "@@\n-x\n+X\n```\n\n-y\n+Y\n```\n", text, "has no other end");
    refuses(UPDATE "@@\n-x\n+X\n```\n-y\n+Y\n" END, text, "line 6 of the diff: neither a line of the hunk");
}

static void finds_hunks_without_numbers(void **state)
{
    static const char *const headers[] = {"@@", "@@ @@", "@@ ... @@", "@@ ... @@ int f(void)", "@@ -,+ @@", "@@ f"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char diff[256];
        snprintf(diff, sizeof diff, X "%s\n c\n-d\n+D\n", headers[i]);
        takes(diff, BASE, "a\nb\nc\nD\ne\n", PATCH_NO_NUMBERS);
    }
    takes(X "@@\n-b\n+B\n\n@@\n-d\n+D\n", BASE, "a\nB\nc\nD\ne\n", PATCH_NO_NUMBERS | PATCH_BLANK_LINES);
    takes(X "@@ -2 +2 @@\n-b\n+B\n@@\n-d\n+D\n", BASE, "a\nB\nc\nD\ne\n", PATCH_NO_NUMBERS);
    takes("--- /dev/null\n+++ b/x\n@@\n+a\n+b\n", "", "a\nb\n", PATCH_NO_NUMBERS);
    refuses(X "@@\n-b\n+B\n", "b\na\nb\n", "patch_ambiguous: hunk 1 of 1 \"@@\" fits as well at line 1 as at line 3");
    refuses(X "@@\n-d\n+D\n@@\n-b\n+B\n", BASE, "above the hunk before it");
    refuses(X "@@\n+new\n", BASE, "only adds lines");
    refuses(X "@@\n a\n+b\n", BASE, "already_applied");
    refuses(X "@@\n a\n-X\n+b\n c\n", BASE, "already_applied");
    refuses(X "@@\n d\n-X\n+Y\n", BASE, "expected \"X\" at line 5, found \"e\"");
    refuses(X "@@\n-X\n+Y\n", "", "patch_mismatch");
    refuses(X "@@\n-a\n+b\nwords\n", BASE, "neither a line of the hunk");
    refuses(X "@@\n", BASE, "changes nothing");
    refuses(X "@@x\n-a\n+b\n", BASE, "a hunk begins with");
}

static void looks_below_what_is_named(void **state)
{
    static const char text[] = "class A:\n  def f():\n    x\n  def g():\n    x\nclass B:\n  def f():\n    x\n";
    const unsigned taken = PATCH_BEGIN_PATCH | PATCH_NO_NUMBERS;
    takes(UPDATE "@@ def g():\n-    x\n+    y\n" END, text,
          "class A:\n  def f():\n    x\n  def g():\n    y\nclass B:\n  def f():\n    x\n", taken);
    takes(UPDATE "@@ class A:\n@@ def f():\n-    x\n+    y\n" END, text,
          "class A:\n  def f():\n    y\n  def g():\n    x\nclass B:\n  def f():\n    x\n", taken);
    takes(UPDATE "@@ class B\n-    x\n+    y\n" END, text,
          "class A:\n  def f():\n    x\n  def g():\n    x\nclass B:\n  def f():\n    y\n", taken);
    refuses(UPDATE "@@ def f():\n-    x\n+    y\n" END, text, "as well at line 3 as at line 5");
    refuses(UPDATE "@@ class A:\n-    x\n+    y\n" END, text, "patch_ambiguous");
    refuses(UPDATE "@@ class C:\n-    x\n+    y\n" END, text, "patch_ambiguous");
    refuses(UPDATE "@@ class\n-    x\n+    y\n" END, text, "patch_ambiguous");
    takes(X "@@ int g(void)\n-\tx;\n+\ty;\n", "int f(void)\n{\n\tx;\n}\nint g(void)\n{\n\tx;\n}\n",
          "int f(void)\n{\n\tx;\n}\nint g(void)\n{\n\ty;\n}\n", PATCH_NO_NUMBERS);
}

static void overlooks_trailing_blanks(void **state)
{
    takes(X "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a  \nb\t\nc \n", "a  \nB\nc \n", PATCH_TRAILING_BLANKS);
    takes(X "@@ -1,3 +1,3 @@\n-a\n+A\n\n-b\n+B\n", "a\n   \nb\n", "A\n   \nB\n",
          PATCH_TRAILING_BLANKS | PATCH_BLANK_LINES);
    takes(X "@@\n a\n-b\n+B\n", "a \r\nb\r\n", "a \r\nB\r\n", PATCH_TRAILING_BLANKS | PATCH_NO_NUMBERS);
    takes(X "@@\n a\n-b\n+B\n", "a \nb\na\nb\n", "a \nb\na\nB\n", PATCH_NO_NUMBERS); // one fits exactly
    refuses(X "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a \nb \nc\na \nb \nc\n", "as well at line 1 as at line 4");
    refuses(X "@@ -1 +1 @@\n-a  \n+a\n", "a\n", "already_applied");
    refuses(X "@@ -1 +1 @@\n-a  \n+b\n", "a\n", "patch_mismatch");
    refuses(X "@@ -1 +1 @@\n-a\n+b\n", " a\n", "patch_mismatch"); // leading blanks count
    refuses(X "@@ -1 +1 @@\n-a\n+b\n", "a \r\nx\n", "does not fit");
}

static void keeps_a_missing_newline(void **state)
{
    const unsigned taken = PATCH_NO_NUMBERS | PATCH_FINAL_NEWLINE;
    takes(X "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "a\nb", "a\nB", PATCH_FINAL_NEWLINE);
    takes(X "@@\n b\n+c\n", "a\nb", "a\nb\nc", taken);
    takes(X "@@\n-a\n+A\n b\n", "a\nb", "A\nb", taken);
    takes(X "@@\n a\n-b\n", "a\nb", "a\n", taken);
    takes(X "@@\n b\n+c\n", "a\r\nb", "a\r\nb\r\nc", taken);
    takes(X "@@\n-b\n+c\n+\n", "a\nb", "a\nc\n\n", taken); // an empty line is nothing without its newline
    refuses(X "@@\n-b\n\\ No newline at end of file\n+c\n", "a\nb\n", "patch_mismatch");
}

static void takes_git_lines_without_the_first(void **state)
{
    takes("rename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "a\n", "b\n", PATCH_NO_GIT_LINE);
    takes("new file mode 100755\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n", "", "b\n", PATCH_NO_GIT_LINE);
    takes("rename from here\n" X "@@ -1 +1 @@\n-a\n+b\n", "a\n", "b\n", PATCH_PROSE);
    refuses("new file mode 160000\n" X "@@ -1 +1 @@\n-a\n+b\n", "a\n", "submodule");
}

static void reads_begin_patch(void **state)
{
    const unsigned taken = PATCH_BEGIN_PATCH | PATCH_NO_NUMBERS;
    takes(UPDATE "@@\n a\n-b\n+B\n@@\n d\n-e\n+E\n" END, BASE, "a\nB\nc\nd\nE\n", taken);
    takes(UPDATE "-b\n+B\n" END, BASE, "a\nB\nc\nd\ne\n", taken); // the first hunk needs no @@
    takes(UPDATE "@@ -1,3 +1,3 @@\n-b\n+B\n" END, BASE, "a\nB\nc\nd\ne\n", taken);
    takes(UPDATE "@@\n-b\n+B\n\n*** End of File\n" END, "b\na\nb\n", "b\na\nB\n", taken);
    takes(UPDATE "@@\n+f\n*** End of File\n" END, BASE, BASE "f\n", taken);
    takes(UPDATE "@@\n--- a\n+++ b\n" END, "-- a\n", "++ b\n", taken);
    takes("*** Begin Patch\r\n*** Update File: x\r\n@@\r\n-b\r\n+B\r\n*** End Patch\r\n", BASE, "a\nB\nc\nd\ne\n",
          taken);
    takes("*** Begin Patch\n\n*** Add File: x\n+a\n+\n+```\n" END, "", "a\n\n```\n", PATCH_BEGIN_PATCH);
    takes("```\n*** Begin Patch\n*** Add File: x\n+a\n*** End Patch\n```\n", "", "a\n",
          PATCH_BEGIN_PATCH | PATCH_CODE_FENCE);
    takes("*** Begin Patch\n" X "@@ -1,9 +1 @@\n-a\n+A\n" END, BASE, "A\nb\nc\nd\ne\n", PATCH_PROSE);
}

static void refuses_broken_begin_patches(void **state)
{
    refuses(UPDATE "@@\n-b\n+B\n*** End of File\n" END, BASE, "patch_mismatch");
    refuses(UPDATE "@@\n-b\n+B\n", BASE, "was cut off");
    refuses("*** Begin Patch\n*** Add File: x\n+a", "", "was cut off");
    refuses("*** Begin Patch\n*** Add File: x\n+a\nb\n+c\n" END, "", "line 4 of the diff: here '*** Add File: '");
    refuses("*** Begin Patch\n*** Add File:\n+a\n" END, "", "no file name can be read");
    refuses(UPDATE END, BASE, "no change follows");
    refuses(UPDATE "@@\n a\n" END, BASE, "changes nothing");
    refuses(UPDATE "@@\n-b\n+B\nc\n" END, BASE, "line 6 of the diff");
    refuses(UPDATE "*** Frobnicate: x\n" END, BASE, "no change follows");
    refuses("*** Begin Patch\n" END, "", "no change found");
    refuses("*** Begin Patch\n*** Add File: x\n+a\n" END, "b\n", "already_exists");
    char *diff = malloc(PATCH_MAX_NAME_LINE * 2);
    int size = sprintf(diff, "*** Begin Patch\n*** Add File: ");
    memset(diff + size, 'n', PATCH_MAX_NAME_LINE);
    strcpy(diff + size + PATCH_MAX_NAME_LINE, "\n+a\n" END);
    refuses(diff, "", "too long");
    free(diff);
}

// 100,000 hunks without numbers over lines that are mostly the same.
static void is_fast_without_numbers(void **state)
{
    enum { HUNKS = 100000 };
    struct buffer diff = {0}, bytes = {0};
    buffer_append(&diff, UPDATE, strlen(UPDATE));
    for (int i = 0; i < HUNKS; i++) {
        char text[128];
        buffer_append(&diff, text, (size_t)snprintf(text, sizeof text, "@@\n }\n-%d\n+%d!\n }\n", i, i));
        buffer_append(&bytes, text, (size_t)snprintf(text, sizeof text, "} \n%d\n}\n}\n", i));
    }
    buffer_append(&diff, END, strlen(END));
    adds(&diff, &bytes, HUNKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_no_liberty_with_an_exact_diff),
        cmocka_unit_test(takes_fences_and_words),
        cmocka_unit_test(keeps_fences_of_the_file),
        cmocka_unit_test(finds_hunks_without_numbers),
        cmocka_unit_test(looks_below_what_is_named),
        cmocka_unit_test(overlooks_trailing_blanks),
        cmocka_unit_test(keeps_a_missing_newline),
        cmocka_unit_test(takes_git_lines_without_the_first),
        cmocka_unit_test(reads_begin_patch),
        cmocka_unit_test(refuses_broken_begin_patches),
        cmocka_unit_test(is_fast_without_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
