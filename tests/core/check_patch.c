// SPDX-License-Identifier: Apache-2.0
// See check_patch.h.
#include "check_patch.h"

struct patch_report report;
unsigned whole_tolerated;
char message[1024];

char *apply(const char *diff, size_t diff_size, const char *bytes, size_t size)
{
    struct patch patch;
    struct error error = {0};
    struct buffer out = {0};
    char *exact = malloc(diff_size + !diff_size); // so that AddressSanitizer sees a read past the end
    memcpy(exact, diff, diff_size);
    int status = patch_parse(exact, diff_size, &patch, &error);
    whole_tolerated = patch.tolerated;
    if (status == 0)
        status = patch_apply(&patch, 0, bytes, size, &out, &report, &error);
    if (status == 0)
        assert_int_equal(buffer_append(&out, "", 1), 0);
    else
        snprintf(message, sizeof message, "%s: %s", error.code, error.message);
    error_clear(&error);
    patch_free(&patch);
    free(exact);
    if (status < 0)
        buffer_free(&out);
    return out.data;
}

void gives(const char *diff, const char *bytes, const char *wanted)
{
    char *made = apply(diff, strlen(diff), bytes, strlen(bytes));
    if (!made)
        fail_msg("%s", message);
    assert_string_equal(made, wanted);
    free(made);
}

void adds(struct buffer *diff, struct buffer *bytes, uint32_t lines)
{
    char *made = apply(diff->data, diff->size, bytes->data, bytes->size);
    if (!made)
        fail_msg("%s", message);
    assert_int_equal(report.added, lines);
    free(made);
    buffer_free(diff);
    buffer_free(bytes);
}

void refuses(const char *diff, const char *bytes, const char *words)
{
    char *made = apply(diff, strlen(diff), bytes, strlen(bytes));
    if (made)
        fail_msg("accepted, and made:\n%s", made);
    if (!strstr(message, words))
        fail_msg("%s\nwas wanted to hold\n%s", message, words);
    assert_null(strchr(message, '\n'));
}
