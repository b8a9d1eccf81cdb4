// SPDX-License-Identifier: Apache-2.0
// What the files of http share: the client, the exchange, and how curl's words become ours.
#ifndef SBA_CORE_HTTP_INTERNAL_H
#define SBA_CORE_HTTP_INTERNAL_H

#include "core/buffer.h"
#include "core/http.h"

#include <curl/curl.h>

enum { HTTP_HEADER_LIMIT = 64 << 10 }; // bytes of all header lines together

struct http_client {
    CURLM *multi;
    unsigned users;                            // the owner and every open exchange
    char *http_proxy, *https_proxy, *no_proxy; // owned; NULL: none
    char *ca_file, *ca_directory;
    bool (*tick)(void *data);
    void *data;
    int64_t next_tick;
};

// Why a callback of ours stopped a transfer; curl itself only knows that one did.
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
    struct http_request request; // what it points to is not kept
    struct curl_slist *headers;
    char *origin;                // "https://host:port" or "the socket /path", for messages
    bool is_socket;              // the latter
    char *proxy;                 // without its password, for messages; NULL: none
    struct http_body *parts;     // what is sent, where it is no single run of bytes
    const char *body_problem;    // why that could not be had; NULL: it could
    int64_t started, sent, last; // monotonic milliseconds; 0: not yet
    size_t header_bytes, body_bytes;
    struct buffer body;        // what has come and was not read yet, from body_read on
    size_t body_read, scanned; // scanned: bytes after body_read known to hold no line end
    bool headers_done, done, after_cr;
    enum http_stop stop;
    CURLcode outcome; // once done
    char curl_message[CURL_ERROR_SIZE];
};

// Gives curl the request, without waiting for anything. Fills what of the exchange curl works on.
int http_prepare(struct http_exchange *exchange, struct error *error);

// Lets curl work once and waits until something happens. -1 where a timeout, the deadline or a cancel ended the wait.
int http_drive(struct http_exchange *exchange, struct error *error);

// The status of an answer, or -1 where it is the proxy that wants something.
int http_check_proxy(const struct http_exchange *exchange, int status, struct error *error);

// -1 where the body is compressed: nobody asked for that, and a small one may hide a large one.
int http_check_coding(const struct http_exchange *exchange, struct error *error);

// Splits and checks the URL, and sets url, socket, proxy and trust of the easy handle. Fills origin and proxy.
int http_set_target(struct http_exchange *exchange, const char *url, struct error *error);

// Waits until more of the body has come than before the call. 1: it has, 0: the body is at its proper end, -1: failed.
int http_more_body(struct http_exchange *exchange, struct error *error);

// Fills *error with what the finished exchange's outcome means. Returns -1.
int http_explain(const struct http_exchange *exchange, struct error *error);

#endif
