// SPDX-License-Identifier: Apache-2.0
// Any bytes as a diff, applied to any bytes. An input is "SIZE\n", that many bytes of a file, then the diff.
#include "core/edit/edit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

// A byte order mark is no part of a line, unless the diff has one too.
static long count_lines(const char *bytes, size_t size, int has_mark)
{
    long lines = 0;
    if (!has_mark && size >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
        bytes += 3, size -= 3;
    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == '\n' || i + 1 == size;
    return lines;
}

// No line is lost or made up: what is there after is what was there before, less what was taken away, and what was
// added.
static void check_hunks(const struct edit_hunks *hunks, const char *bytes, size_t size)
{
    struct buffer out = {0};
    struct error error = {0};
    struct edit_report report;
    int has_mark = 0;
    for (uint32_t i = 0; i < hunks->count; i++)
        has_mark |= hunks->items[i].has_mark;
    if (edit_apply(hunks, 0, hunks->count, bytes, size, &out, &report, &error) == 0) {
        long lines = count_lines(bytes, size, has_mark) - report.removed + report.added;
        require(count_lines(out.data, out.size, has_mark) == lines);
        require(report.fuzz <= EDIT_MAX_FUZZ);
    }
    error_clear(&error);
    buffer_free(&out);
}

// Reads what is below each @@ line: hunks as long as they say, or all lines up to the next.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *newline = size ? memchr(data, '\n', size) : NULL;
    if (!newline)
        return 0;
    const char *bytes = newline + 1, *end = (const char *)data + size;
    size_t file_size = strtoul((const char *)data, NULL, 10);
    if (file_size > (size_t)(end - bytes))
        file_size = (size_t)(end - bytes);
    struct error error = {0};
    size_t diff_size = (size_t)(end - bytes) - file_size;
    char *diff = strndup(bytes + file_size, diff_size);
    require(diff != NULL);
    struct edit_hunks hunks = {.diff = diff, .size = (uint32_t)strlen(diff)};
    const char *at = diff;
    end = diff + hunks.size;
    while ((at = memmem(at, (size_t)(end - at), "@@", 2)) && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        struct edit_hunk hunk = {.header = (uint32_t)(at - hunks.diff), .body = (uint32_t)(newline + 1 - hunks.diff)};
        const char *next = memmem(newline, (size_t)(end - newline), "\n@@", 3);
        uint32_t limit = next ? (uint32_t)(next + 1 - hunks.diff) : hunks.size;
        if (hunk.header % 2)
            edit_read_hunks(&hunks, hunk.header, &error);
        else
            edit_add_hunk(&hunks, &hunk, limit, &error);
        at = newline + 1;
    }
    if (hunks.count)
        check_hunks(&hunks, bytes, file_size);
    free(hunks.items);
    free(diff);
    return 0;
}
