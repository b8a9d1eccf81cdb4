// SPDX-License-Identifier: Apache-2.0
// The body of a request as a list of parts that are sent one after the other: bytes, and files, which become base64
// while they are sent. It takes a few tens of KiB, however large they are.
#ifndef SBA_CORE_HTTP_BODY_H
#define SBA_CORE_HTTP_BODY_H

#include "core/error.h"
#include "core/text.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct http_part {
    const char *bytes;            // borrowed; NULL: a file
    size_t size;                  // of the bytes
    int fd;                       // of a regular file, sent from its start to where it ends now
    char sha256[TEXT_SHA256_HEX]; // what the file must be; empty: whatever it is
};

struct http_body;

// A body that borrows the parts' bytes, and has descriptors of its own. The parts themselves are copied. Errors: those
// of fstat(2), "too_many_files", "out_of_memory".
struct http_body *http_body_new(const struct http_part *parts, size_t count, struct error *error);

// NULL is fine.
void http_body_free(struct http_body *body);

// Bytes of the whole, as they are sent.
int64_t http_body_size(const struct http_body *body);

// Gives the next bytes: their number, 0 at the end; -1 and *why (a static string) where a file cannot be read, or is
// not what it was: its last bytes are given only after it proved right.
ssize_t http_body_read(struct http_body *body, char *to, size_t room, const char **why);

// Begins anew.
void http_body_rewind(struct http_body *body);

#endif
