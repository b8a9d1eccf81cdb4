// SPDX-License-Identifier: Apache-2.0
// What the files http*.c share.
#ifndef SBA_CORE_HTTP_INTERNAL_H
#define SBA_CORE_HTTP_INTERNAL_H

#include "core/base/buffer.h"
#include "core/http/http.h"

#include <curl/curl.h>

enum { HTTP_HEADER_LIMIT = 64 << 10 }; // bytes of all header lines together

struct http_client {
    CURLM *multi;
    struct http_settings settings;
    bool (*tick)(void *data);
    void *data;
    int64_t next_tick;
    size_t users; // its owner, and the exchanges that are open
};

// Why one of our callbacks stopped a transfer. Curl only knows that one did.
enum http_stop {
    HTTP_STOP_NONE,
    HTTP_STOP_HEADERS,
    HTTP_STOP_BODY,
    HTTP_STOP_MEMORY,
    HTTP_STOP_SOURCE,
    HTTP_STOP_AGAIN
};

struct http_exchange {
    struct http_client *client;
    CURL *easy;
    struct http_request request; // its pointers are valid only in http_open
    struct curl_slist *headers;
    char *origin;                // "https://host:port" or "the socket /path", for messages
    bool is_socket;              // the latter
    char *proxy;                 // without user and password, for messages; NULL: none
    struct http_body sending;    // the body of the request
    const char *body_problem;    // why it could not be read; NULL: no problem
    int64_t started, sent, last; // monotonic milliseconds; 0: not yet
    size_t header_bytes, body_bytes;
    struct buffer body;        // received bytes; those before body_read were read
    size_t body_read, scanned; // scanned: bytes after body_read that hold no line end
    bool headers_done, done, after_cr;
    enum http_stop stop;
    CURLcode outcome; // once done
    char curl_message[CURL_ERROR_SIZE];
};

// Gives curl the request, without waiting.
int http_prepare(struct http_exchange *exchange, struct error *error);

// Lets curl work once, and waits for an event. -1: a timeout, the deadline or a cancel ended the wait.
int http_drive(struct http_exchange *exchange, struct error *error);

// The status of an answer, or -1 if the proxy wants authentication.
int http_check_proxy(const struct http_exchange *exchange, int status, struct error *error);

// Parses the URL, and sets URL, socket, proxy and trust of the easy handle. Fills origin and proxy.
int http_set_target(struct http_exchange *exchange, const char *url, struct error *error);

// Fills *error with the reason why the exchange failed. Returns -1.
int http_explain(const struct http_exchange *exchange, struct error *error);

#endif
