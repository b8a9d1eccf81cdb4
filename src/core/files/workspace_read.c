// SPDX-License-Identifier: Apache-2.0
// Reads a file in one pass, see workspace_read.h.
#include "core/files/workspace_read.h"

#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/files/workspace_internal.h"

#include <errno.h>
#include <string.h>

enum { CHUNK = 256 * 1024, SMALL = 16 * 1024 };

// A pass over a file: what it still has to skip, and what of the range is still to come.
struct pass {
    uint64_t read;       // bytes so far
    uint64_t skip_bytes; // before the range
    uint64_t skip_lines;
    uint64_t lines; // of the range; 0: no limit
    bool over;      // the range has ended
    uint64_t ends;  // of lines, so far
    char last;      // byte
    size_t chunk;   // bytes to read at a time
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

// The part of a chunk that belongs to the range.
static const char *part_of_range(struct pass *pass, const char *from, const char *end, size_t *size)
{
    uint64_t skipped = pass->skip_bytes < (uint64_t)(end - from) ? pass->skip_bytes : (uint64_t)(end - from);
    pass->skip_bytes -= skipped;
    from = pass_lines(from + skipped, end, &pass->skip_lines);
    if (pass->over)
        from = end;
    const char *stop = end;
    if (pass->lines && from < end) {
        stop = pass_lines(from, end, &pass->lines);
        pass->over = pass->lines == 0;
    }
    *size = (size_t)(stop - from);
    return from;
}

static ssize_t read_chunk(int fd, char *into, size_t size)
{
    ssize_t count;
    do
        count = read(fd, into, size);
    while (count < 0 && errno == EINTR && interrupt_reason() == INTERRUPT_NONE);
    return count;
}

// Reads the next chunk after the content and keeps the part that is wanted. 1, 0 at the end of the file, or -1.
static int pass_chunk(int fd, struct pass *pass, const struct read_options *options, struct buffer *content,
                      size_t *kept, struct read_result *result, struct text_sha256 *sha256)
{
    if (buffer_reserve(content, pass->chunk) < 0) {
        errno = ENOMEM;
        return -1;
    }
    char *chunk = content->data + content->size;
    ssize_t count = read_chunk(fd, chunk, pass->chunk);
    if (count <= 0)
        return (int)count;
    if (options->digest) {
        text_sha256_update(sha256, chunk, (size_t)count);
        pass->ends += text_count_newlines(chunk, (size_t)count);
        pass->last = chunk[count - 1];
    }
    pass->read += (uint64_t)count;

    size_t size, room = options->max_bytes - *kept;
    const char *part = part_of_range(pass, chunk, chunk + count, &size);
    if (size > room) {
        size = room;
        result->truncated = true;
    }
    if (part > chunk)
        memmove(chunk, part, size);
    content->size += size;
    *kept += size;
    return 1;
}

// Room for what is coming, so that a big file is not copied as the buffer grows, and a small one takes little; what the
// file system says of a size is a hint only.
static void reserve_for(const struct read_options *options, uint64_t size, struct pass *pass, struct buffer *content)
{
    pass->chunk = size < SMALL ? SMALL : CHUNK;
    uint64_t wanted = size > options->offset ? size - options->offset : 0;
    if (wanted > options->max_bytes)
        wanted = options->max_bytes;
    if (options->first_line <= 1 && !options->last_line && wanted < SIZE_MAX / 2 - CHUNK)
        buffer_reserve(content, (size_t)wanted + pass->chunk);
}

int workspace_read(const struct workspace *workspace, const char *path, const struct read_options *options,
                   struct buffer *content, struct read_result *result, struct error *error)
{
    struct stat status;
    cleanup_fd int fd = workspace_open_file(workspace, path, &status, error);
    if (fd < 0)
        return -1;
    struct pass pass = {
        .skip_bytes = options->offset,
        .skip_lines = options->first_line ? options->first_line - 1 : 0,
    };
    if (options->last_line > pass.skip_lines)
        pass.lines = options->last_line - pass.skip_lines;
    else if (options->last_line)
        pass.over = true;
    *result = (struct read_result){.mode = status.st_mode & 07777};
    if (!options->digest && options->offset && lseek(fd, (off_t)options->offset, SEEK_SET) >= 0)
        pass.skip_bytes = 0;
    reserve_for(options, (uint64_t)status.st_size, &pass, content);

    struct text_sha256 sha256;
    text_sha256_init(&sha256);
    size_t kept = 0;
    int more = 1;
    while (more > 0 && (options->digest || !(pass.over || result->truncated))) {
        if (interrupt_check(error) < 0)
            return -1;
        more = pass_chunk(fd, &pass, options, content, &kept, result, &sha256);
    }
    if (more < 0)
        return interrupt_check(error) < 0 ? -1 : error_system(error, errno, "cannot read %s", path);
    result->size = options->digest ? pass.read : (uint64_t)status.st_size;
    if (options->digest)
        text_sha256_final(&sha256, result->sha256);
    result->lines = pass.ends + (pass.read > 0 && pass.last != '\n');
    return 0;
}

bool workspace_time_left(const struct read_time *time)
{
    return clock_now() < time->until && interrupt_signal() == time->signal;
}

int workspace_digest(int fd, const char *path, const struct read_time *time, char sha256[TEXT_SHA256_HEX],
                     uint64_t *size, struct error *error)
{
    static char chunk[CHUNK];
    struct text_sha256 state;
    uint64_t sum = 0;
    ssize_t count;

    text_sha256_init(&state);
    do {
        if (interrupt_check(error) < 0)
            return -1;
        if (!workspace_time_left(time))
            return 1;
        count = read_chunk(fd, chunk, sizeof chunk);
        if (count < 0)
            return interrupt_check(error) < 0 ? -1 : error_system(error, errno, "cannot read %s", path);
        text_sha256_update(&state, chunk, (size_t)count);
        sum += (uint64_t)count;
    } while (count > 0);
    text_sha256_final(&state, sha256);
    *size = sum;
    return 0;
}
