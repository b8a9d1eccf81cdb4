// SPDX-License-Identifier: Apache-2.0
// Exchanges over libcurl's multi interface, see http.h: curl works only while one of our waits drives it.
#include "core/http_internal.h"

#include "core/crypto.h"
#include "core/interrupt.h"

#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *copy(const char *text)
{
    return text && *text ? strdup(text) : NULL;
}

// Debian's libcurl opens descriptors for itself that a command would inherit. All of ours are O_CLOEXEC anyway.
static void close_on_exec(void)
{
    syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
}

struct http_client *http_client_new(const struct http_settings *settings, struct error *error)
{
    struct http_client *client = calloc(1, sizeof *client);
    crypto_ask_processor();
    if (!client || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(client->multi = curl_multi_init())) {
        free(client);
        error_set(error, "out_of_memory", 0, "cannot start HTTP: out of memory");
        return NULL;
    }
    close_on_exec();
    client->users = 1;
    client->http_proxy = copy(settings->http_proxy);
    client->https_proxy = copy(settings->https_proxy);
    client->no_proxy = copy(settings->no_proxy);
    client->ca_file = copy(settings->ca_file);
    client->ca_directory = copy(settings->ca_directory);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, 8L);
    return client;
}

void http_client_free(struct http_client *client)
{
    if (!client || --client->users > 0)
        return;
    curl_multi_cleanup(client->multi);
    free(client->http_proxy);
    free(client->https_proxy);
    free(client->no_proxy);
    free(client->ca_file);
    free(client->ca_directory);
    free(client);
}

// Keeps a header line of the answer. A new status line (after a 1xx, or a proxy's own answer) starts over.
static size_t on_header(char *bytes, size_t unit, size_t count, void *context)
{
    struct http_exchange *exchange = context;
    size_t size = unit * count, text = size;
    exchange->last = interrupt_now();
    exchange->header_bytes += size;
    if (exchange->header_bytes > exchange->header_limit) {
        exchange->stop = HTTP_STOP_HEADERS;
        return 0;
    }
    while (text > 0 && (bytes[text - 1] == '\n' || bytes[text - 1] == '\r'))
        text--;
    if (text == 0) {
        long status = 0;
        curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
        exchange->headers_done = status >= 200;
        return size;
    }
    if (text >= 5 && memcmp(bytes, "HTTP/", 5) == 0)
        exchange->header_lines.size = 0;
    else if (buffer_append(&exchange->header_lines, bytes, text) < 0 ||
             buffer_append(&exchange->header_lines, "", 1) < 0) {
        exchange->stop = HTTP_STOP_MEMORY;
        return 0;
    }
    return size;
}

static size_t on_body(char *bytes, size_t unit, size_t count, void *context)
{
    struct http_exchange *exchange = context;
    size_t size = unit * count;
    exchange->last = interrupt_now();
    exchange->body_bytes += size;
    if (exchange->body_bytes > exchange->body_limit)
        exchange->stop = HTTP_STOP_BODY;
    else if (buffer_append(&exchange->body, bytes, size) < 0)
        exchange->stop = HTTP_STOP_MEMORY;
    return exchange->stop == HTTP_STOP_NONE ? size : 0;
}

static size_t on_send(char *to, size_t unit, size_t count, void *context)
{
    struct http_exchange *exchange = context;
    ssize_t given = http_body_read(exchange->parts, to, unit * count, &exchange->body_problem);
    exchange->last = interrupt_now();
    if (given >= 0)
        return (size_t)given;
    exchange->stop = HTTP_STOP_SOURCE;
    return CURL_READFUNC_ABORT;
}

// A connection that was kept may turn out to be dead: what was sent on it is sent again on a new one.
static int on_rewind(void *context, curl_off_t offset, int origin)
{
    struct http_exchange *exchange = context;
    if (offset != 0 || origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    http_body_rewind(exchange->parts);
    return CURL_SEEKFUNC_OK;
}

// The end of the connecting and of the sending, as far as curl says: its progress callback is told on every step.
static int on_progress(void *context, curl_off_t total, curl_off_t received, curl_off_t to_send, curl_off_t sent)
{
    struct http_exchange *exchange = context;
    curl_off_t ready = 0;
    (void)total, (void)received, (void)to_send, (void)sent;
    if (exchange->sent == 0 && curl_easy_getinfo(exchange->easy, CURLINFO_PRETRANSFER_TIME_T, &ready) == CURLE_OK &&
        ready > 0)
        exchange->sent = interrupt_now();
    return 0;
}

// Before each sending of the request: curl sends it again where a connection that was kept ends before the answer.
static int on_ready(void *context, char *remote, char *local, int remote_port, int local_port)
{
    struct http_exchange *exchange = context;
    (void)remote, (void)local, (void)remote_port, (void)local_port;
    if (exchange->asked && exchange->once) {
        exchange->stop = HTTP_STOP_AGAIN;
        return CURL_PREREQFUNC_ABORT;
    }
    exchange->asked = true;
    return CURL_PREREQFUNC_OK;
}

static void set_body(struct http_exchange *exchange, const struct http_request *request)
{
    CURL *easy = exchange->easy;
    if (exchange->parts) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_send);
        curl_easy_setopt(easy, CURLOPT_READDATA, exchange);
        curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_rewind);
        curl_easy_setopt(easy, CURLOPT_SEEKDATA, exchange);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)http_body_size(exchange->parts));
    } else if (request->body) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
    }
    if (strcmp(request->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static int set_headers(struct http_exchange *exchange, const char *const *headers)
{
    // No "Expect: 100-continue": servers that ignore it would cost a second a request.
    exchange->headers = curl_slist_append(NULL, "Expect:");
    for (; exchange->headers && headers && *headers; headers++)
        if (!curl_slist_append(exchange->headers, *headers))
            return -1;
    curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->headers);
    curl_easy_setopt(exchange->easy, CURLOPT_HEADEROPT, CURLHEADER_SEPARATE);
    return exchange->headers ? 0 : -1;
}

// libcurl's own sockets would be inherited by commands.
static curl_socket_t open_socket(void *unused, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)unused, (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int prepare(struct http_exchange *exchange, const struct http_request *request, struct error *error)
{
    CURL *easy = exchange->easy = curl_easy_init();
    if (!easy)
        return error_set(error, "out_of_memory", 0, "cannot start a request: out of memory");
    if (http_set_target(exchange, request->url, error) < 0)
        return -1;
    if (request->parts && !(exchange->parts = http_body_new(request->parts, request->part_count, error)))
        return -1;
    set_body(exchange, request);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, exchange);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_ready);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->curl_message);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); // no waiting for a resolver that nobody waits for any more
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (set_headers(exchange, request->headers) < 0 || curl_multi_add_handle(exchange->client->multi, easy) != CURLM_OK)
        return error_set(error, "out_of_memory", 0, "cannot start a request to %s: out of memory", exchange->origin);
    return 0;
}

struct http_exchange *http_open(struct http_client *client, const struct http_request *request, struct error *error)
{
    struct http_exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange) {
        error_set(error, "out_of_memory", 0, "cannot start a request: out of memory");
        return NULL;
    }
    exchange->client = client;
    client->users++;
    exchange->connect_patience = request->connect_patience;
    exchange->first_patience = request->first_patience;
    exchange->idle_patience = request->idle_patience;
    exchange->whole_patience = request->whole_patience;
    exchange->header_limit = request->header_limit;
    exchange->body_limit = request->body_limit;
    exchange->once = request->once;
    exchange->farewell = request->farewell;
    exchange->started = interrupt_now();
    if (prepare(exchange, request, error) < 0) {
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
    http_client_free(exchange->client);
    http_body_free(exchange->parts);
    curl_slist_free_all(exchange->headers);
    buffer_free(&exchange->header_lines);
    buffer_free(&exchange->body);
    free(exchange->origin);
    free(exchange->proxy);
    free(exchange);
}

// Marks the exchanges of the client that curl has finished.
static void collect(struct http_client *client)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(client->multi, &left));) {
        struct http_exchange *finished = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &finished);
        finished->outcome = message->data.result;
        finished->done = true;
        finished->headers_done = finished->headers_done || finished->outcome == CURLE_OK;
    }
}

struct patience {
    int64_t from, milliseconds; // from when, on the monotonic clock, and how long
    const char *code, *what;
};

// The patience of the phase that the exchange is in.
static struct patience patience_of_phase(const struct http_exchange *exchange)
{
    if (exchange->headers_done)
        return (struct patience){exchange->last, exchange->idle_patience, "slow_answer", "sent nothing more"};
    if (exchange->sent == 0)
        return (struct patience){exchange->started, exchange->connect_patience, "slow_connect", "was not reached"};
    // A piece of our own body that could be sent counts as well.
    return (struct patience){exchange->last > exchange->sent ? exchange->last : exchange->sent,
                             exchange->first_patience, "slow_first_byte", "sent no answer"};
}

// The patience that ends first.
static struct patience patience_of(const struct http_exchange *exchange)
{
    struct patience phase = patience_of_phase(exchange);
    int64_t end = exchange->started + exchange->whole_patience;
    if (exchange->whole_patience == 0 || phase.from + phase.milliseconds <= end)
        return phase;
    return (struct patience){exchange->started, exchange->whole_patience, phase.code, phase.what};
}

static int interrupted(const struct http_exchange *exchange, enum interrupt_reason reason, struct error *error)
{
    bool cancelled = reason == INTERRUPT_CANCELLED;
    return error_set(error, cancelled ? "cancelled" : "timeout", 0, "%s while waiting for %s",
                     cancelled ? "the job was cancelled" : "the job's time was up", exchange->origin);
}

// Lets curl work once and waits until something happens. -1 where a patience, the deadline or a cancel ended the wait.
static int drive(struct http_exchange *exchange, struct error *error)
{
    CURLM *multi = exchange->client->multi;
    size_t bytes = exchange->body_bytes;
    bool headers = exchange->headers_done;
    int running;
    if (curl_multi_perform(multi, &running) != CURLM_OK)
        return error_set(error, "connection_failed", 0, "the request to %s failed inside curl", exchange->origin);
    collect(exchange->client);
    if (exchange->done || exchange->body_bytes > bytes || exchange->headers_done != headers)
        return 0;

    enum interrupt_reason reason = exchange->farewell ? INTERRUPT_NONE : interrupt_reason();
    if (reason != INTERRUPT_NONE)
        return interrupted(exchange, reason, error);
    struct patience patience = patience_of(exchange);
    int64_t left = patience.from + patience.milliseconds - interrupt_now();
    if (left <= 0)
        return error_set(error, patience.code, 0, "%s %s within %.1f s",
                         exchange->proxy && !exchange->sent ? exchange->proxy : exchange->origin, patience.what,
                         (double)patience.milliseconds / 1000);
    struct curl_waitfd cancel = {.fd = interrupt_fd(), .events = CURL_WAIT_POLLIN};
    if (exchange->farewell)
        curl_multi_poll(multi, NULL, 0, left > INT_MAX ? INT_MAX : (int)left, NULL);
    else
        curl_multi_poll(multi, &cancel, cancel.fd >= 0, interrupt_poll_timeout(left), NULL);
    return 0;
}

int http_status(struct http_exchange *exchange, struct error *error)
{
    long status = 0;
    while (!exchange->headers_done && !exchange->done)
        if (drive(exchange, error) < 0)
            return -1;
    if (!exchange->headers_done)
        return http_explain(exchange, error);
    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    return http_check_proxy(exchange, (int)status, error);
}

const char *http_proxy(const struct http_exchange *exchange)
{
    const char *scheme = NULL;
    curl_easy_getinfo(exchange->easy, CURLINFO_SCHEME, &scheme);
    return scheme && strcasecmp(scheme, "http") == 0 ? exchange->proxy : NULL;
}

const char *http_header(const struct http_exchange *exchange, const char *name)
{
    size_t length = strlen(name);
    const char *line = exchange->header_lines.data, *end = line + exchange->header_lines.size;
    for (; exchange->headers_done && line < end; line += strlen(line) + 1)
        if (strncasecmp(line, name, length) == 0 && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " \t");
    return NULL;
}

int http_more_body(struct http_exchange *exchange, struct error *error)
{
    size_t before = exchange->body_bytes;
    if (exchange->body_read > 0) {
        exchange->body.size -= exchange->body_read;
        memmove(exchange->body.data, exchange->body.data + exchange->body_read, exchange->body.size);
        exchange->body_read = 0;
    }
    while (exchange->body_bytes == before && !exchange->done)
        if (drive(exchange, error) < 0)
            return -1;
    if (exchange->body_bytes > before && exchange->stop == HTTP_STOP_NONE)
        return 1;
    return exchange->outcome == CURLE_OK ? 0 : http_explain(exchange, error);
}

ssize_t http_read(struct http_exchange *exchange, const char **bytes, struct error *error)
{
    if (http_status(exchange, error) < 0 || http_check_coding(exchange, error) < 0)
        return -1;
    int more = exchange->body.size > exchange->body_read ? 1 : http_more_body(exchange, error);
    if (more <= 0)
        return more;
    *bytes = exchange->body.data + exchange->body_read;
    size_t size = exchange->body.size - exchange->body_read;
    exchange->body_read = exchange->body.size;
    return (ssize_t)size;
}

bool http_reused(const struct http_exchange *exchange)
{
    long connects = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_NUM_CONNECTS, &connects);
    return connects == 0;
}
