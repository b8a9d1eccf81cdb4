// SPDX-License-Identifier: Apache-2.0
// Lines of an answer's body, whatever pieces it comes in. See http.h.
#include "core/http_internal.h"

#include <string.h>

// Where the line that begins at from ends: the index of its LF or CR in the body, or body.size while there is none.
static size_t find_end(struct http_exchange *exchange, enum http_line_end end)
{
    const struct buffer *body = &exchange->body;
    size_t from = exchange->body_read + exchange->scanned, left = body->size - from;
    const char *start = body->data + from, *lf = left ? memchr(start, '\n', left) : NULL, *cr = NULL;
    if (end == HTTP_LINE_ANY && left)
        cr = memchr(start, '\r', lf ? (size_t)(lf - start) : left);
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

static ssize_t take(struct http_exchange *exchange, size_t at, bool found, enum http_line_end end, const char **line,
                    bool *ended)
{
    *line = exchange->body.data + exchange->body_read;
    size_t size = at - exchange->body_read;
    exchange->after_cr = found && exchange->body.data[at] == '\r';
    exchange->body_read = at + found;
    exchange->scanned = 0;
    *ended = found;
    if (found && end == HTTP_LINE_LF && size > 0 && (*line)[size - 1] == '\r')
        size--;
    return (ssize_t)size;
}

ssize_t http_read_line(struct http_exchange *exchange, enum http_line_end end, const char **line, bool *ended,
                       struct error *error)
{
    *line = NULL;
    *ended = false;
    if (http_status(exchange, error) < 0 || http_check_coding(exchange, error) < 0)
        return -1;
    for (;;) {
        skip_late_lf(exchange);
        size_t at = find_end(exchange, end);
        if (at < exchange->body.size)
            return take(exchange, at, true, end, line, ended);
        int more = http_more_body(exchange, error);
        if (more < 0)
            return -1;
        if (more == 0 && exchange->body.size == exchange->body_read)
            return 0;
        if (more == 0)
            return take(exchange, exchange->body.size, false, end, line, ended);
    }
}
