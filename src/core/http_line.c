// SPDX-License-Identifier: Apache-2.0
// Reads the body of an answer line by line, see http.h.
#include "core/http_internal.h"

#include <string.h>

// The index of the LF or CR that ends the line at body_read, or body.size if there is none yet.
static size_t find_end(struct http_exchange *exchange)
{
    const struct buffer *body = &exchange->body;
    size_t from = exchange->body_read + exchange->scanned, left = body->size - from;
    const char *start = body->data + from, *lf = left ? memchr(start, '\n', left) : NULL;
    const char *cr = left ? memchr(start, '\r', lf ? (size_t)(lf - start) : left) : NULL;
    const char *found = cr ? cr : lf;
    exchange->scanned = found ? 0 : body->size - exchange->body_read;
    return found ? (size_t)(found - body->data) : body->size;
}

// After a line that ended with CR, skips the LF of a CRLF, which may arrive later.
static void skip_late_lf(struct http_exchange *exchange)
{
    if (exchange->after_cr && exchange->body.size > exchange->body_read) {
        exchange->body_read += exchange->body.data[exchange->body_read] == '\n';
        exchange->after_cr = false;
    }
}

// Takes the line that ends at `at`.
static ssize_t take(struct http_exchange *exchange, size_t at, const char **line, bool *ended)
{
    size_t size = at - exchange->body_read;
    *ended = at < exchange->body.size;
    *line = exchange->body.data + exchange->body_read;
    exchange->after_cr = *ended && exchange->body.data[at] == '\r';
    exchange->body_read = at + *ended;
    exchange->scanned = 0;
    return (ssize_t)size;
}

ssize_t http_read_line(struct http_exchange *exchange, const char **line, bool *ended, struct error *error)
{
    *line = NULL;
    *ended = false;
    if (http_status(exchange, error) < 0 || http_check_coding(exchange, error) < 0)
        return -1;
    for (;;) {
        skip_late_lf(exchange);
        size_t at = find_end(exchange);
        if (at < exchange->body.size)
            return take(exchange, at, line, ended);
        int more = http_more_body(exchange, error);
        if (more < 0)
            return -1;
        if (more == 0)
            return exchange->body_read == exchange->body.size ? 0 : take(exchange, exchange->body.size, line, ended);
    }
}
