// SPDX-License-Identifier: Apache-2.0
// The body of a request as a list of parts: bytes, and files, which are encoded as base64 while they are sent. It needs
// less than 64 KiB of memory, however large the files are.
#ifndef SBA_CORE_HTTP_BODY_H
#define SBA_CORE_HTTP_BODY_H

#include "core/base/error.h"
#include "core/text/text.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct http_part {
    const char *bytes;            // borrowed; NULL: a file
    size_t size;                  // of the bytes
    int fd;                       // of a regular file, sent from its start to its present end
    char sha256[TEXT_SHA256_HEX]; // of the file, which is checked; empty: not checked
};

struct http_body;

// Makes a body. It borrows the bytes of the parts, and duplicates their descriptors. Errors: those of fstat(2),
// "too_many_files", "out_of_memory".
struct http_body *http_body_new(const struct http_part *parts, size_t count, struct error *error);

// NULL does nothing.
void http_body_free(struct http_body *body);

// Size in bytes, as sent.
int64_t http_body_size(const struct http_body *body);

// Copies the next bytes. Returns their number; 0 at the end; -1 and *why (a static string) if a file cannot be read or
// has changed. The last bytes of a file come only after its SHA-256 was checked.
ssize_t http_body_read(struct http_body *body, char *to, size_t room, const char **why);

// Starts from the beginning again.
void http_body_rewind(struct http_body *body);

#endif
