// SPDX-License-Identifier: Apache-2.0
// Reads a file in one pass, see workspace_read.h.
#include "core/workspace/workspace_read.h"

#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/base/io.h"
#include "core/workspace/workspace_internal.h"

#include <errno.h>
#include <string.h>

#define ALL UINT64_MAX

struct reading {
    int fd;
    uint64_t at; // where fd stands
    const struct workspace_read_options *options;
    struct buffer *content;
    struct workspace_read_result *result;

    // What is still to come of the range.
    uint64_t bytes_before, lines_before;
    uint64_t lines; // of it; ALL: to the end
    uint64_t room;  // for bytes of it
    bool is_over;

    // The digest of all that was read; in the result as long as it has all of the file.
    struct text_sha256 sha256;
    char last; // byte
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

// Takes the part of a chunk that belongs to the range. -1: out of memory.
static int take(struct reading *reading, const char *chunk, size_t size)
{
    struct workspace_read_result *result = reading->result;
    const char *end = chunk + size;
    size_t skipped = size_least(reading->bytes_before, size);
    reading->bytes_before -= skipped;
    const char *from = pass_lines(chunk + skipped, end, &reading->lines_before);
    if (reading->is_over || reading->lines_before)
        return 0;
    const char *stop = reading->lines == ALL ? end : pass_lines(from, end, &reading->lines);
    size_t there = (size_t)(stop - from), kept = size_least(there, reading->room);
    if (result->length == 0)
        result->from = reading->at + (uint64_t)(from - chunk);
    result->length += kept;
    result->truncated = kept < there;
    reading->room -= kept;
    reading->is_over = reading->lines == 0 || result->truncated;
    size_t room = reading->options->max_content - reading->content->size;
    return buffer_append(reading->content, from, size_least(kept, room));
}

static void digest(struct reading *reading, const char *chunk, size_t size)
{
    struct workspace_read_result *result = reading->result;
    text_sha256_update(&reading->sha256, chunk, size);
    result->lines += text_count_newlines(chunk, size);
    reading->last = chunk[size - 1];
    result->has_digest = reading->at + size <= reading->options->digest; // the file may have grown
}

static void begin(struct reading *reading)
{
    const struct workspace_read_options *options = reading->options;
    reading->bytes_before = options->offset;
    reading->lines_before = options->first_line ? options->first_line - 1 : 0;
    reading->lines = ALL;
    if (options->last_line)
        reading->lines = options->last_line > reading->lines_before ? options->last_line - reading->lines_before : 0;
    reading->room = options->max_bytes;
    reading->is_over = reading->lines == 0;
    reading->last = '\n';
    text_sha256_init(&reading->sha256);
    if (reading->result->has_digest || !options->offset)
        return;
    if (lseek(reading->fd, (off_t)options->offset, SEEK_SET) < 0) // too far for any file
        reading->is_over = true;
    reading->at = options->offset;
    reading->bytes_before = 0;
}

// How much to read next: of a range of bytes no more than it has.
static size_t chunk_size(const struct reading *reading, size_t most)
{
    if (reading->result->has_digest)
        return most;
    if (reading->is_over)
        return 0;
    return reading->lines == ALL && !reading->lines_before ? size_least(reading->room, most) : most;
}

static int read_range(struct reading *reading, uint64_t file_size, const char *path, struct error *error)
{
    static char chunk[128 * 1024];
    size_t wanted;
    while ((wanted = chunk_size(reading, sizeof chunk)) > 0) {
        ssize_t count = io_read(reading->fd, chunk, wanted, IO_HERE);
        if (interrupt_check(error) < 0)
            return -1;
        if (count < 0)
            return error_system(error, errno, "cannot read %s", path);
        if (count == 0)
            return 0;
        if (reading->result->has_digest)
            digest(reading, chunk, (size_t)count);
        if (take(reading, chunk, (size_t)count) < 0)
            return error_memory(error, "cannot read %s", path);
        reading->at += (uint64_t)count;
        if (count < (ssize_t)sizeof chunk && reading->at == file_size)
            return 0; // a regular file ends where a read comes short
    }
    if (!reading->is_over)
        reading->result->truncated = reading->at < file_size;
    return 0;
}

int workspace_read(const struct workspace *workspace, const char *path, const struct workspace_read_options *options,
                   struct buffer *content, struct workspace_read_result *result, struct error *error)
{
    struct stat status;
    cleanup_fd int fd = workspace_open_file(workspace, path, options->flags, &status, error);
    if (fd < 0)
        return -1;
    const uint64_t size = (uint64_t)status.st_size;
    *result = (struct workspace_read_result){
        .mode = status.st_mode & 07777, .size = size, .has_digest = size <= options->digest};
    struct reading reading = {.fd = fd, .options = options, .content = content, .result = result};
    begin(&reading);
    if (read_range(&reading, size, path, error) < 0)
        return -1;
    if (!result->has_digest)
        return 0;
    result->size = reading.at;
    result->lines += reading.last != '\n';
    text_sha256_final(&reading.sha256, result->sha256);
    return 0;
}
