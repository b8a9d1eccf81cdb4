// SPDX-License-Identifier: Apache-2.0
// The body of a request as a list of parts, see http_body.h.
#include "core/http/http_body.h"

#include "core/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RAW = 12 << 10, STAGED = RAW / 3 * 4 }; // bytes read from a file at once (a multiple of 3), and as base64

struct http_body {
    size_t count, at; // at: the part that is being sent
    uint64_t offset;  // bytes of it that were read
    int64_t size;
    struct text_sha256 digest;         // of the file that is being sent
    char raw[RAW], staged[STAGED + 1]; // staged: base64 that was not copied yet,
    size_t staged_from, staged_to;     // from here to there
    struct part {
        struct http_part given;
        uint64_t file_size;
    } parts[];
};

static int add_part(struct http_body *body, const struct http_part *given, struct error *error)
{
    struct part *part = &body->parts[body->count];
    struct stat status;
    part->given = *given;
    if (given->bytes) {
        body->size += (int64_t)given->size;
    } else {
        if (fstat(given->fd, &status) < 0 || (part->given.fd = fcntl(given->fd, F_DUPFD_CLOEXEC, 0)) < 0)
            return error_system(error, errno, "cannot send a file");
        part->file_size = (uint64_t)status.st_size;
        body->size += (int64_t)((part->file_size + 2) / 3 * 4);
    }
    body->count++;
    return 0;
}

struct http_body *http_body_new(const struct http_part *parts, size_t count, struct error *error)
{
    struct http_body *body = malloc(sizeof *body + count * sizeof body->parts[0]);
    if (!body) {
        error_set(error, "out_of_memory", 0, "cannot send a body: out of memory");
        return NULL;
    }
    body->count = 0;
    body->size = 0;
    http_body_rewind(body);
    for (size_t i = 0; i < count; i++)
        if (add_part(body, &parts[i], error) < 0) {
            http_body_free(body);
            return NULL;
        }
    return body;
}

void http_body_free(struct http_body *body)
{
    for (size_t i = 0; body && i < body->count; i++)
        if (!body->parts[i].given.bytes)
            close(body->parts[i].given.fd);
    free(body);
}

int64_t http_body_size(const struct http_body *body)
{
    return body->size;
}

static void begin_part(struct http_body *body, size_t at)
{
    body->at = at;
    body->offset = 0;
    body->staged_from = body->staged_to = 0;
    text_sha256_init(&body->digest);
}

void http_body_rewind(struct http_body *body)
{
    begin_part(body, 0);
}

// Reads size bytes, or up to the end of the file.
static ssize_t read_fully(int fd, char *to, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count = pread(fd, to + done, size - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -1;
        if (count == 0)
            break;
        done += (size_t)count;
    }
    return (ssize_t)done;
}

static bool is_as_expected(struct http_body *body, const char *expected)
{
    char sha256[TEXT_SHA256_HEX];
    text_sha256_final(&body->digest, sha256);
    return strcmp(sha256, expected) == 0;
}

// Reads and encodes the next piece of a file. 0, or -1 and *why.
static int stage(struct http_body *body, const struct part *part, const char **why)
{
    uint64_t left = part->file_size - body->offset;
    size_t wanted = left < RAW ? (size_t)left : RAW;
    ssize_t count = read_fully(part->given.fd, body->raw, wanted, body->offset);
    if (count < 0) {
        *why = strerror(errno);
        return -1;
    }
    body->offset += (uint64_t)count;
    if (*part->given.sha256)
        text_sha256_update(&body->digest, body->raw, (size_t)count);
    bool last = body->offset == part->file_size;
    if ((size_t)count < wanted || (last && *part->given.sha256 && !is_as_expected(body, part->given.sha256))) {
        *why = "the file changed meanwhile";
        return -1;
    }
    body->staged_from = 0;
    body->staged_to = text_base64_write(body->raw, (size_t)count, body->staged);
    return 0;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static ssize_t give_bytes(struct http_body *body, const struct part *part, char *to, size_t room)
{
    size_t count = smaller(room, part->given.size - (size_t)body->offset);
    memcpy(to, part->given.bytes + body->offset, count);
    body->offset += count;
    return (ssize_t)count;
}

static ssize_t give_file(struct http_body *body, const struct part *part, char *to, size_t room, const char **why)
{
    if (body->staged_from == body->staged_to && body->offset < part->file_size && stage(body, part, why) < 0)
        return -1;
    size_t count = smaller(room, body->staged_to - body->staged_from);
    memcpy(to, body->staged + body->staged_from, count);
    body->staged_from += count;
    return (ssize_t)count;
}

ssize_t http_body_read(struct http_body *body, char *to, size_t room, const char **why)
{
    size_t given = 0;
    while (given < room && body->at < body->count) {
        const struct part *part = &body->parts[body->at];
        ssize_t count = part->given.bytes ? give_bytes(body, part, to + given, room - given)
                                          : give_file(body, part, to + given, room - given, why);
        if (count < 0)
            return -1;
        if (count == 0)
            begin_part(body, body->at + 1);
        given += (size_t)count;
    }
    return (ssize_t)given;
}
