// SPDX-License-Identifier: Apache-2.0
// Clients and exchanges over libcurl, see http.h.
#include "core/http/http_internal.h"

#include "core/base/clock.h"

#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

// Debian's libcurl opens descriptors that commands would inherit. All of ours are close-on-exec anyway.
static void close_on_exec(void)
{
    syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
}

struct http_client *http_client_new(const struct http_settings *settings, struct error *error)
{
    struct http_client *client = calloc(1, sizeof *client);
    if (!client || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(client->multi = curl_multi_init())) {
        free(client);
        error_memory(error, "cannot start HTTP");
        return NULL;
    }
    close_on_exec();
    client->settings = *settings;
    client->users = 1;
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, 8L);
    return client;
}

void http_client_free(struct http_client *client)
{
    if (!client || --client->users > 0)
        return;
    curl_multi_cleanup(client->multi);
    free(client);
}

void http_client_tick(struct http_client *client, bool (*tick)(void *data), void *data)
{
    client->tick = tick;
    client->data = data;
}

struct http_exchange *http_open(struct http_client *client, const struct http_request *request, struct error *error)
{
    struct http_exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return error_memory(error, "cannot start a request"), NULL;
    exchange->client = client;
    client->users++;
    exchange->request = *request;
    exchange->started = clock_now();
    if (http_prepare(exchange, error) < 0) {
        http_close(exchange);
        return NULL;
    }
    return exchange;
}

void http_close(struct http_exchange *exchange)
{
    if (!exchange)
        return;
    if (exchange->easy) {
        curl_multi_remove_handle(exchange->client->multi, exchange->easy);
        curl_easy_cleanup(exchange->easy);
    }
    curl_slist_free_all(exchange->headers);
    buffer_free(&exchange->body);
    free(exchange->origin);
    free(exchange->proxy);
    http_client_free(exchange->client);
    free(exchange);
}

int http_status(struct http_exchange *exchange, struct error *error)
{
    long status = 0;
    while (!exchange->headers_done && !exchange->done)
        if (http_drive(exchange, error) < 0)
            return -1;
    if (!exchange->headers_done)
        return http_explain(exchange, error);
    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    return http_check_proxy(exchange, (int)status, error);
}

void http_set_idle_timeout(struct http_exchange *exchange, int64_t milliseconds)
{
    exchange->request.idle_timeout = milliseconds;
}

const char *http_proxy(const struct http_exchange *exchange)
{
    const char *scheme = NULL;
    curl_easy_getinfo(exchange->easy, CURLINFO_SCHEME, &scheme);
    return scheme && strcasecmp(scheme, "http") == 0 ? exchange->proxy : NULL;
}

const char *http_header(const struct http_exchange *exchange, const char *name)
{
    struct curl_header *header;
    if (!exchange->headers_done || curl_easy_header(exchange->easy, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return NULL;
    return header->value;
}

// Waits for more of the body. 1: there is more; 0: the body is at its proper end; -1: failed.
static int more_body(struct http_exchange *exchange, struct error *error)
{
    size_t before = exchange->body_bytes;
    if (exchange->body_read > 0) {
        exchange->body.size -= exchange->body_read;
        memmove(exchange->body.data, exchange->body.data + exchange->body_read, exchange->body.size);
        exchange->body_read = 0;
    }
    while (exchange->body_bytes == before && !exchange->done)
        if (http_drive(exchange, error) < 0)
            return -1;
    if (exchange->body_bytes > before && exchange->stop == HTTP_STOP_NONE)
        return 1;
    return exchange->outcome == CURLE_OK ? 0 : http_explain(exchange, error);
}

// -1 if the body is compressed: we did not ask for that, and a small one may expand to a large one.
static int check_coding(const struct http_exchange *exchange, struct error *error)
{
    const char *coding = http_header(exchange, "Content-Encoding");
    if (!coding || !*coding || strcasecmp(coding, "identity") == 0)
        return 0;
    return error_set(error, "bad_answer", 0, "%s sent its answer compressed (%.20s), which was not asked for",
                     exchange->origin, coding);
}

ssize_t http_read(struct http_exchange *exchange, const char **bytes, struct error *error)
{
    if (http_status(exchange, error) < 0 || check_coding(exchange, error) < 0)
        return -1;
    int more = exchange->body.size > exchange->body_read ? 1 : more_body(exchange, error);
    if (more <= 0)
        return more;
    *bytes = exchange->body.data + exchange->body_read;
    size_t size = exchange->body.size - exchange->body_read;
    exchange->body_read = exchange->body.size;
    return (ssize_t)size;
}

// The index of the LF or CR that ends the line at body_read, or body.size if there is none yet. It looks no further
// than that end: there may be a million lines in the buffer.
static size_t find_end(struct http_exchange *exchange)
{
    const struct buffer *body = &exchange->body;
    size_t at = exchange->body_read + exchange->scanned;
    while (at < body->size && body->data[at] != '\n' && body->data[at] != '\r')
        at++;
    exchange->scanned = at < body->size ? 0 : body->size - exchange->body_read;
    return at;
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
    if (http_status(exchange, error) < 0 || check_coding(exchange, error) < 0)
        return -1;
    for (;;) {
        skip_late_lf(exchange);
        size_t at = find_end(exchange);
        if (at < exchange->body.size)
            return take(exchange, at, line, ended);
        int more = more_body(exchange, error);
        if (more < 0)
            return -1;
        if (more == 0)
            return exchange->body_read == exchange->body.size ? 0 : take(exchange, exchange->body.size, line, ended);
    }
}
