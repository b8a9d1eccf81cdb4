// SPDX-License-Identifier: Apache-2.0
// The body of a request, see http_body.h.
#include "core/http/http_body.h"

#include "core/base/buffer.h"

#include <string.h>
#include <unistd.h>

enum { LEAST_ROOM = 8 }; // bytes; base64 comes in fours, with a NUL here

int64_t http_body_size(const struct http_body *body)
{
    uint64_t size = 0;
    for (const struct http_part *part = body->parts; part < body->parts + body->count; part++)
        size += part->bytes || part->is_span ? part->size : (part->size + 2) / 3 * 4;
    return (int64_t)size;
}

void http_body_rewind(struct http_body *body)
{
    body->at = 0;
    body->offset = 0;
}

static bool is_as_expected(struct http_body *body, const char *expected)
{
    char sha256[TEXT_SHA256_HEX];
    text_sha256_final(&body->sha256, sha256);
    return strcmp(sha256, expected) == 0;
}

static ssize_t read_file(struct http_body *body, const struct http_part *part, char *to, size_t room, const char **why)
{
    char raw[12 << 10];
    if (body->offset == 0)
        text_sha256_init(&body->sha256);
    size_t wanted = size_least(size_least(sizeof raw, (room - 1) / 4 * 3), part->size - body->offset);
    ssize_t count = pread(part->fd, raw, wanted, (off_t)body->offset);
    if (count < 0) {
        *why = "it cannot be read";
        return -1;
    }
    body->offset += (uint64_t)count;
    if (*part->sha256)
        text_sha256_update(&body->sha256, raw, (size_t)count);
    bool is_last = body->offset == part->size;
    if ((size_t)count < wanted || (is_last && *part->sha256 && !is_as_expected(body, part->sha256))) {
        *why = "the file changed meanwhile";
        return -1;
    }
    return (ssize_t)text_base64_write(raw, wanted, to);
}

static ssize_t read_plain(struct http_body *body, const struct http_part *part, char *to, size_t room, const char **why)
{
    size_t wanted = size_least(room, part->size - body->offset);
    ssize_t count = (ssize_t)wanted;
    if (part->bytes)
        memcpy(to, part->bytes + body->offset, wanted);
    else
        count = pread(part->fd, to, wanted, (off_t)(part->offset + (int64_t)body->offset));
    if (count <= 0) {
        *why = count < 0 ? "it cannot be read" : "the file changed meanwhile";
        return -1;
    }
    body->offset += (uint64_t)count;
    return count;
}

ssize_t http_body_read(struct http_body *body, char *to, size_t room, const char **why)
{
    size_t done = 0;
    for (; body->at < body->count; body->at++, body->offset = 0) {
        const struct http_part *part = &body->parts[body->at];
        while (body->offset < part->size) {
            if (room - done < LEAST_ROOM)
                return (ssize_t)done;
            bool is_plain = part->bytes || part->is_span;
            ssize_t count = (is_plain ? read_plain : read_file)(body, part, to + done, room - done, why);
            if (count < 0)
                return -1;
            done += (size_t)count;
        }
    }
    return (ssize_t)done;
}
