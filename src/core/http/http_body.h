// SPDX-License-Identifier: Apache-2.0
// The body of a request: a list of bytes, of spans of files, and of files that are checked, and encoded as base64 where
// that is wanted, while they are sent.
#ifndef SBA_CORE_HTTP_BODY_H
#define SBA_CORE_HTTP_BODY_H

#include "core/base/parts.h"
#include "core/text/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct http_part {
    struct part part;
    bool base64;                  // it is encoded
    char sha256[TEXT_SHA256_HEX]; // of a file from its start, which is checked; empty: not checked
};

struct http_body {
    const struct http_part *parts; // borrowed, with their bytes and descriptors
    size_t count;
    size_t at;                 // the part that is being sent
    uint64_t offset;           // bytes of it that were read
    struct text_sha256 sha256; // of them
};

// Size in bytes, as sent.
int64_t http_body_size(const struct http_body *body);

// Starts from the beginning, the first time or again.
void http_body_rewind(struct http_body *body);

// Fills room for at least 8 bytes, but for the last 7. Returns how many came; 0 at the end; -1 and *why (a static
// string) if a file cannot be read or has changed. The last bytes of a file come only after its SHA-256 was checked.
ssize_t http_body_read(struct http_body *body, char *to, size_t room, const char **why);

#endif
