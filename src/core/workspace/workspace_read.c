// SPDX-License-Identifier: Apache-2.0
// Reads a file in one pass, see workspace_read.h.
#include "core/workspace/workspace_read.h"

#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/workspace/workspace_internal.h"

#include <errno.h>
#include <string.h>

// What is still to come of the range.
struct range {
    uint64_t bytes_before, lines_before;
    uint64_t lines; // of it
    size_t room;    // for bytes of it
    bool is_over;
};

// Moves past count line ends. Returns where it stopped; *count becomes the number still missing.
static const char *pass_lines(const char *from, const char *end, uint64_t *count)
{
    while (*count && from < end) {
        const char *newline = memchr(from, '\n', (size_t)(end - from));
        if (!newline)
            return end;
        from = newline + 1;
        --*count;
    }
    return from;
}

// Appends the part of a chunk that belongs to the range.
static int take(struct range *range, const char *from, const char *end, struct buffer *content, bool *truncated)
{
    uint64_t chunk = (uint64_t)(end - from), skipped = range->bytes_before < chunk ? range->bytes_before : chunk;
    range->bytes_before -= skipped;
    from = pass_lines(from + skipped, end, &range->lines_before);
    if (range->is_over || range->lines_before)
        return 0;
    const char *stop = range->lines == UINT64_MAX ? end : pass_lines(from, end, &range->lines);
    size_t size = (size_t)(stop - from), kept = size < range->room ? size : range->room;
    *truncated = kept < size;
    range->room -= kept;
    range->is_over = range->lines == 0 || *truncated;
    return buffer_append(content, from, kept);
}

// The file from its first byte, or from where the range begins.
static struct range range_of(int fd, const struct workspace_read_options *options)
{
    struct range range = {
        .bytes_before = options->offset,
        .lines_before = options->first_line ? options->first_line - 1 : 0,
        .lines = UINT64_MAX,
        .room = options->max_bytes,
    };
    if (options->last_line)
        range.lines = options->last_line > range.lines_before ? options->last_line - range.lines_before : 0;
    range.is_over = range.lines == 0;
    if (!options->digest && options->offset && lseek(fd, (off_t)options->offset, SEEK_SET) >= 0)
        range.bytes_before = 0;
    return range;
}

int workspace_read(const struct workspace *workspace, const char *path, const struct workspace_read_options *options,
                   struct buffer *content, struct workspace_read_result *result, struct error *error)
{
    static char chunk[128 * 1024];
    struct stat status;
    struct text_sha256 sha256;
    char last = '\n';
    cleanup_fd int fd = workspace_open_file(workspace, path, options->flags, &status, error);
    if (fd < 0)
        return -1;
    *result = (struct workspace_read_result){.mode = status.st_mode & 07777, .size = (uint64_t)status.st_size};
    struct range range = range_of(fd, options);
    if (options->digest) {
        text_sha256_init(&sha256);
        result->size = 0;
    }
    uint64_t seen = 0;
    while (options->digest || !range.is_over) {
        ssize_t count = read(fd, chunk, sizeof chunk);
        if (interrupt_check(error) < 0)
            return -1;
        if (count < 0 && errno != EINTR)
            return error_system(error, errno, "cannot read %s", path);
        if (count == 0)
            break;
        if (count < 0)
            continue;
        if (options->digest) {
            text_sha256_update(&sha256, chunk, (size_t)count);
            result->size += (uint64_t)count;
            result->lines += text_count_newlines(chunk, (size_t)count);
            last = chunk[count - 1];
        }
        if (take(&range, chunk, chunk + count, content, &result->truncated) < 0)
            return error_system(error, ENOMEM, "cannot read %s", path);
        seen += (uint64_t)count;
        if (count < (ssize_t)sizeof chunk && seen == (uint64_t)status.st_size)
            break; // a regular file ends where a read comes short
    }
    if (options->digest)
        text_sha256_final(&sha256, result->sha256);
    result->lines += last != '\n';
    return 0;
}
