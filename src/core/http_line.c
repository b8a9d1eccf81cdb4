// SPDX-License-Identifier: Apache-2.0
// Lines of an answer's body, whatever pieces it comes in. See http.h.
#include "core/http_internal.h"

#include <string.h>

// Where the line that begins at body_read ends: the index of its LF or CR in the body, or body.size while there is
// none.
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

// The LF of a CRLF whose CR ended the last line may come in a later piece: it belongs to that line.
static void skip_late_lf(struct http_exchange *exchange)
{
    if (exchange->after_cr && exchange->body.size > exchange->body_read) {
        exchange->body_read += exchange->body.data[exchange->body_read] == '\n';
        exchange->after_cr = false;
    }
}

// The line that ends at `at`, where the body has its end or ends itself.
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
