// SPDX-License-Identifier: Apache-2.0
// The options and callbacks that curl gets for an exchange, see http.h.
#include "core/http/http_internal.h"

#include "core/base/clock.h"

#include <string.h>
#include <sys/socket.h>

// Counts a header line. An empty one ends the headers, unless they are those of a 1xx.
static size_t on_header(char *bytes, size_t unit, size_t count, void *context)
{
    struct http_exchange *exchange = context;
    size_t size = unit * count;
    exchange->last = clock_now();
    exchange->header_bytes += size;
    if (exchange->header_bytes > HTTP_HEADER_LIMIT) {
        exchange->stop = HTTP_STOP_HEADERS;
        return 0;
    }
    if (*bytes == '\r' || *bytes == '\n') {
        long status = 0;
        curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
        exchange->headers_done = status >= 200;
    }
    return size;
}

static size_t on_body(char *bytes, size_t unit, size_t count, void *context)
{
    struct http_exchange *exchange = context;
    size_t size = unit * count;
    exchange->last = clock_now();
    exchange->body_bytes += size;
    if (exchange->body_bytes > exchange->request.body_limit)
        exchange->stop = HTTP_STOP_BODY;
    else if (buffer_append(&exchange->body, bytes, size) < 0)
        exchange->stop = HTTP_STOP_MEMORY;
    return exchange->stop == HTTP_STOP_NONE ? size : 0;
}

static size_t on_send(char *to, size_t unit, size_t count, void *context)
{
    struct http_exchange *exchange = context;
    ssize_t given = http_body_read(&exchange->sending, to, unit * count, &exchange->body_problem);
    exchange->last = clock_now();
    if (given >= 0)
        return (size_t)given;
    exchange->stop = HTTP_STOP_SOURCE;
    return CURL_READFUNC_ABORT;
}

// A reused connection may be dead; then curl sends the body again on a new one.
static int on_rewind(void *context, curl_off_t offset, int origin)
{
    struct http_exchange *exchange = context;
    if (offset != 0 || origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    http_body_rewind(&exchange->sending);
    return CURL_SEEKFUNC_OK;
}

// Curl calls this before it sends the request, and again if a reused connection ended before the answer.
static int on_ready(void *context, char *remote, char *local, int remote_port, int local_port)
{
    struct http_exchange *exchange = context;
    (void)remote, (void)local, (void)remote_port, (void)local_port;
    if (exchange->sent && exchange->request.once) {
        exchange->stop = HTTP_STOP_AGAIN;
        return CURL_PREREQFUNC_ABORT;
    }
    if (!exchange->sent)
        exchange->sent = clock_now();
    return CURL_PREREQFUNC_OK;
}

static void set_body(struct http_exchange *exchange)
{
    const struct http_request *request = &exchange->request;
    CURL *easy = exchange->easy;
    if (request->body) {
        exchange->sending = (struct http_body){.parts = request->body, .count = request->body_count};
        http_body_rewind(&exchange->sending);
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_send);
        curl_easy_setopt(easy, CURLOPT_READDATA, exchange);
        curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_rewind);
        curl_easy_setopt(easy, CURLOPT_SEEKDATA, exchange);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)http_body_size(&exchange->sending));
    }
    if (strcmp(request->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static int set_headers(struct http_exchange *exchange, const char *const *headers)
{
    // No "Expect: 100-continue": with servers that ignore it, each request would wait a second.
    exchange->headers = curl_slist_append(NULL, "Expect:");
    for (; exchange->headers && headers && *headers; headers++)
        if (!curl_slist_append(exchange->headers, *headers))
            return -1;
    curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->headers);
    curl_easy_setopt(exchange->easy, CURLOPT_HEADEROPT, CURLHEADER_SEPARATE);
    return exchange->headers ? 0 : -1;
}

// Commands would inherit the sockets that libcurl opens itself.
static curl_socket_t open_socket(void *unused, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)unused, (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

int http_prepare(struct http_exchange *exchange, struct error *error)
{
    const struct http_request *request = &exchange->request;
    CURL *easy = exchange->easy = curl_easy_init();
    if (!easy)
        return error_memory(error, "cannot start a request");
    if (http_set_target(exchange, request->url, error) < 0)
        return -1;
    set_body(exchange);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_ready);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->curl_message);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); // do not wait for a resolver whose answer is not needed
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (set_headers(exchange, request->headers) < 0 || curl_multi_add_handle(exchange->client->multi, easy) != CURLM_OK)
        return error_memory(error, "cannot start a request to %s", exchange->origin);
    return 0;
}
