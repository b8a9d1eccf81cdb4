// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 over TCP, TLS and unix sockets, through proxies; one request at a time or several side by side, answers read
// as they come. Every wait obeys interrupt.h unless ignore_interrupt is set. Redirects are never followed.
//
// Error contract as in error.h. Codes: "invalid_url", "name_not_resolved", "connection_refused", "network_unreachable",
// "proxy_failed", "proxy_refused" (another try would not help), "tls_failed", "slow_connect", "slow_first_byte",
// "slow_answer" (a wait of ours ran out), "cut_off" (the answer ended before its end), "too_large", "bad_answer",
// "bad_body" (a file of it changed, or cannot be read), "timeout", "cancelled" (interrupt.h), "out_of_memory",
// "permission_denied" (a unix socket's mode), "connection_failed". Messages name the origin or the proxy, never a
// password, a path or a query.
#ifndef SBA_CORE_HTTP_H
#define SBA_CORE_HTTP_H

#include "core/error.h"
#include "core/http_body.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Proxies and trust as the environment of the runner gives them. Strings are borrowed while http_client_new runs.
struct http_settings {
    const char *http_proxy;   // of http:// requests; NULL: none
    const char *https_proxy;  // of https:// requests; NULL: none
    const char *no_proxy;     // as no_proxy.h has it; NULL: none
    const char *ca_file;      // SSL_CERT_FILE; NULL: where the image keeps its bundle
    const char *ca_directory; // SSL_CERT_DIR; NULL: none
};

// Keeps connections open between requests to the same origin.
struct http_client;

struct http_client *http_client_new(const struct http_settings *settings, struct error *error);

// Its exchanges may live on; the last one to be closed takes it along.
void http_client_free(struct http_client *client);

// Has tick called about every tenth of a second while an exchange waits; NULL: no more. If it returns false, the wait
// fails as "interrupted".
void http_client_tick(struct http_client *client, bool (*tick)(void *data), void *data);

struct http_request {
    const char *method;         // "GET", "POST", ...
    const char *url;            // http://, https://, http+unix://%2Fpath%2Fto.sock/request/path
    const char *const *headers; // "Name: value", NULL-terminated; may be NULL
    const char *body;           // borrowed until the exchange is closed; NULL: no body
    size_t body_size;
    const struct http_part *parts; // instead of body; their bytes are borrowed until the exchange is closed
    size_t part_count;
    int64_t connect_timeout; // milliseconds for name, connection, proxy and TLS
    int64_t first_timeout;   // milliseconds from the request sent to the answer's first byte
    int64_t idle_timeout;    // milliseconds between two pieces of the answer
    int64_t whole_timeout;   // milliseconds for all of it; 0: as long as the other three allow
    size_t body_limit;       // bytes of the answer's body, as it comes in
    bool once;               // never sent again by itself, where a connection that was kept ends before the answer;
                             // through a proxy that reads it, on a connection of its own
    bool ignore_interrupt;   // for requests after the deadline or a cancel: only the timeouts end their waits
};

// One request and its answer.
struct http_exchange;

// Starts a request. Nothing is waited for. The exchange belongs to the caller.
struct http_exchange *http_open(struct http_client *client, const struct http_request *request, struct error *error);

// Waits for the status line and headers of the final answer (after 1xx). Returns the status.
int http_status(struct http_exchange *exchange, struct error *error);

// Value of a header of the answer, the first of that name, case ignored; NULL where there is none or no answer yet.
// Lives until the next call on the exchange.
const char *http_header(const struct http_exchange *exchange, const char *name);

// Waits until more of the body is there and gives all of it: its size, 0 at the body's proper end. *bytes lives until
// the next call on the exchange.
ssize_t http_read(struct http_exchange *exchange, const char **bytes, struct error *error);

// Waits for a whole line of the body, whatever pieces it comes in: its size without the CR, LF or CRLF that ends it, -1
// on failure. *line is NULL at the body's end; *ended says whether the line had its end (the last one may lack it).
// Lives until the next call.
ssize_t http_read_line(struct http_exchange *exchange, const char **line, bool *ended, struct error *error);

// The proxy that an answer came through and may come from, "the proxy http://host:port"; NULL where there is none, or
// it could only hand bytes on. Lives until the exchange is closed.
const char *http_proxy(const struct http_exchange *exchange);

// Ends the exchange; an unfinished one is cut off by closing its connection. NULL is fine.
void http_close(struct http_exchange *exchange);

#endif
