// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 client over TCP, TLS and unix sockets, with proxies. Several requests may run at the same time; answers
// are read as they arrive. Every wait obeys interrupt.h unless ignore_interrupt is set. Redirects are never followed.
//
// Errors as in error.h. Codes: "invalid_url", "name_not_resolved", "connection_refused", "network_unreachable",
// "proxy_failed", "proxy_refused" (another try would not help), "tls_failed", "slow_connect", "slow_first_byte",
// "slow_answer" (one of our timeouts), "cut_off" (the answer ended before its end), "too_large", "bad_answer",
// "bad_body" (a file of the body changed, or cannot be read), "timeout", "cancelled" (interrupt.h), "out_of_memory",
// "permission_denied" (a unix socket's mode), "connection_failed". Messages name the origin or the proxy, never a
// password, a path or a query.
#ifndef SBA_CORE_HTTP_H
#define SBA_CORE_HTTP_H

#include "core/base/error.h"
#include "core/http/http_body.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Proxies and trust, as the runner's environment sets them. The strings are borrowed for the client's life.
struct http_settings {
    const char *http_proxy;   // of http:// requests; NULL: none
    const char *https_proxy;  // of https:// requests; NULL: none
    const char *no_proxy;     // see no_proxy.h; NULL: none
    const char *ca_file;      // SSL_CERT_FILE; NULL: the bundle of the image
    const char *ca_directory; // SSL_CERT_DIR; NULL: none
};

// Keeps connections open between requests to the same origin.
struct http_client;

struct http_client *http_client_new(const struct http_settings *settings, struct error *error);

// The exchanges that are open go on; the last one that is closed takes the client with it.
void http_client_free(struct http_client *client);

// Calls tick about every 0.1 s while an exchange waits; NULL: stop that. If it returns false, the wait fails with
// "interrupted".
void http_client_tick(struct http_client *client, bool (*tick)(void *data), void *data);

struct http_request {
    const char *method;           // "GET", "POST", ...
    const char *url;              // http://, https://, http+unix://%2Fpath%2Fto.sock/request/path
    const char *const *headers;   // "Name: value", NULL-terminated; may be NULL
    const struct http_part *body; // parts, borrowed until the exchange is closed; NULL: no body
    size_t body_count;
    int64_t connect_timeout; // milliseconds for name, connection, proxy and TLS
    int64_t first_timeout;   // milliseconds from the request sent to the answer's first byte
    int64_t idle_timeout;    // milliseconds between two pieces of the answer
    int64_t whole_timeout;   // milliseconds for the whole exchange; 0: only the other three count
    size_t body_limit;       // bytes of the answer's body
    bool once;               // do not send it again if a reused connection ends before the answer; an http:// request
                             // through a proxy then gets a new connection
    bool ignore_interrupt;   // for requests after the deadline or a cancel; only its own timeouts apply
};

// One request and its answer.
struct http_exchange;

// Starts a request without waiting. The caller closes the exchange.
struct http_exchange *http_open(struct http_client *client, const struct http_request *request, struct error *error);

// Waits for the status line and the headers of the answer; skips 1xx. Returns the status.
int http_status(struct http_exchange *exchange, struct error *error);

// The value of the first header of that name (case is ignored); NULL if there is none, or no answer yet. Valid until
// the next call on the exchange.
const char *http_header(const struct http_exchange *exchange, const char *name);

// Waits for more of the body and returns the size of what there is; 0 at the proper end. *bytes is valid until the next
// call on the exchange.
ssize_t http_read(struct http_exchange *exchange, const char **bytes, struct error *error);

// Waits for a whole line of the body. Returns its size without the CR, LF or CRLF that ends it, or -1. *line is NULL at
// the end of the body, and valid until the next call. *ended says whether the line had its end; the last may lack it.
ssize_t http_read_line(struct http_exchange *exchange, const char **line, bool *ended, struct error *error);

// How long may pass between two pieces of the answer from now on, counted from the last one.
void http_set_idle_timeout(struct http_exchange *exchange, int64_t milliseconds);

// The proxy that may have written the answer itself, "the proxy http://host:port"; NULL if there is none, or it only
// passed bytes on. Valid until the exchange is closed.
const char *http_proxy(const struct http_exchange *exchange);

// Ends the exchange; if it is unfinished, closes its connection. NULL does nothing.
void http_close(struct http_exchange *exchange);

#endif
