// SPDX-License-Identifier: Apache-2.0
// The body of a request, see http_body.h.
#include "core/http/http_body.h"

#include "core/base/buffer.h"

#include <string.h>

static const char changed[] = "the file changed meanwhile";

enum { LEAST_ROOM = 8 }; // bytes; base64 comes in fours, with a NUL here

int64_t http_body_size(const struct http_body *body)
{
    uint64_t size = 0;
    for (const struct http_part *part = body->parts; part < body->parts + body->count; part++)
        size += part->base64 ? (part->part.size + 2) / 3 * 4 : part->part.size;
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

static int read_raw(struct http_body *body, const struct http_part *part, char *to, size_t size, const char **why)
{
    struct error error = {0};
    struct parts rest = {&part->part, 1, (size_t)body->offset};
    if (parts_read(&rest, to, size, &error) < 0) {
        *why = strcmp(error.code, "changed") == 0 ? changed : "it cannot be read";
        error_clear(&error);
        return -1;
    }
    bool is_first = body->offset == 0;
    body->offset += size;
    if (!*part->sha256)
        return 0;
    if (is_first)
        text_sha256_init(&body->sha256);
    text_sha256_update(&body->sha256, to, size);
    if (body->offset < part->part.size || is_as_expected(body, part->sha256))
        return 0;
    *why = changed;
    return -1;
}

static ssize_t read_base64(struct http_body *body, const struct http_part *part, char *to, size_t room,
                           const char **why)
{
    char raw[12 << 10];
    size_t wanted = size_least(size_least(sizeof raw, (room - 1) / 4 * 3), part->part.size - body->offset);
    if (read_raw(body, part, raw, wanted, why) < 0)
        return -1;
    return (ssize_t)text_base64_write(raw, wanted, to);
}

static ssize_t read_plain(struct http_body *body, const struct http_part *part, char *to, size_t room, const char **why)
{
    size_t wanted = size_least(room, part->part.size - body->offset);
    return read_raw(body, part, to, wanted, why) < 0 ? -1 : (ssize_t)wanted;
}

ssize_t http_body_read(struct http_body *body, char *to, size_t room, const char **why)
{
    size_t done = 0;
    for (; body->at < body->count; body->at++, body->offset = 0) {
        const struct http_part *part = &body->parts[body->at];
        while (body->offset < part->part.size) {
            if (room - done < LEAST_ROOM)
                return (ssize_t)done;
            ssize_t count = (part->base64 ? read_base64 : read_plain)(body, part, to + done, room - done, why);
            if (count < 0)
                return -1;
            done += (size_t)count;
        }
    }
    return (ssize_t)done;
}
