// SPDX-License-Identifier: Apache-2.0
// Any bytes as a diff, applied to any bytes. An input is "SIZE\n", that many bytes of a file, then the diff.
#include "core/edit/patch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

static long count_lines(const char *bytes, size_t size)
{
    long lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == '\n' || i + 1 == size;
    return lines;
}

// A refusal is said in one line.
static void check_error(struct error *error)
{
    require(error->code && error->message && !strchr(error->message, '\n'));
    error_clear(error);
}

// No line is lost or made up: what is there after is what was there before, less what was taken away, and what was
// added.
static void check_file(const struct patch *patch, uint32_t file, const char *bytes, size_t size)
{
    struct buffer out = {0};
    struct error error = {0};
    struct patch_report report;
    if (patch_apply(patch, file, bytes, size, &out, &report, &error) == 0) {
        long lines = count_lines(bytes, size) - report.removed + report.added;
        require(count_lines(out.data, out.size) == lines);
        require(report.fuzz <= PATCH_MAX_FUZZ);
    } else {
        check_error(&error);
    }
    buffer_free(&out);
}

static void check_names(const struct patch_file *file)
{
    require(file->from ? file->to != NULL : file->old_name || file->new_name);
    require(!file->old_name || *file->old_name);
    require(!file->new_name || *file->new_name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *newline = size ? memchr(data, '\n', size) : NULL;
    if (!newline)
        return 0;
    const char *bytes = newline + 1, *end = (const char *)data + size;
    size_t file_size = strtoul((const char *)data, NULL, 10);
    if (file_size > (size_t)(end - bytes))
        file_size = (size_t)(end - bytes);
    struct patch patch;
    struct error error = {0};
    if (patch_parse(bytes + file_size, (size_t)(end - bytes) - file_size, &patch, &error) < 0)
        check_error(&error);
    else
        for (uint32_t i = 0; i < patch.file_count && i < 100; i++) {
            check_names(&patch.files[i]);
            check_file(&patch, i, bytes, file_size);
        }
    patch_free(&patch);
    return 0;
}
