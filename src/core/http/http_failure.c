// SPDX-License-Identifier: Apache-2.0
// Translates the failures of curl and of proxies into the codes of http.h.
#include "core/http/http_internal.h"

#include <errno.h>
#include <string.h>

static int explain_stop(const struct http_exchange *exchange, struct error *error)
{
    switch (exchange->stop) {
    case HTTP_STOP_HEADERS:
        return error_set(error, "too_large", 0, "%s sent more than %d bytes of headers", exchange->origin,
                         HTTP_HEADER_LIMIT);
    case HTTP_STOP_BODY:
        return error_set(error, "too_large", 0, "%s sent more than %zu bytes", exchange->origin,
                         exchange->request.body_limit);
    case HTTP_STOP_SOURCE:
        return error_set(error, "bad_body", 0, "what was to be sent to %s could not be had: %s", exchange->origin,
                         exchange->body_problem);
    case HTTP_STOP_AGAIN:
        return error_set(error, "cut_off", 0, "%s closed the connection before it answered", exchange->origin);
    default:
        return error_memory(error, "cannot keep the answer of %s", exchange->origin);
    }
}

// The errno of the last connect.
static int connect_errno(const struct http_exchange *exchange)
{
    long number = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_OS_ERRNO, &number);
    return (int)number;
}

// A unix socket whose queue is full refuses at once, and curl, which waits for it, finds no errno then.
static bool is_queue_full(const struct http_exchange *exchange, int number)
{
    return exchange->is_socket && (number == 0 || number == EAGAIN);
}

// The code for a connection that failed.
static const char *connect_code(const struct http_exchange *exchange)
{
    int number = connect_errno(exchange);
    if (exchange->is_socket && number == EACCES)
        return "permission_denied";
    if (number == ENETUNREACH || number == EHOSTUNREACH)
        return "network_unreachable";
    bool is_refused = number == ECONNREFUSED || number == ENOENT || is_queue_full(exchange, number);
    return is_refused ? "connection_refused" : "connection_failed";
}

static const struct {
    CURLcode outcome;
    const char *code;
} codes[] = {
    {CURLE_COULDNT_RESOLVE_HOST, "name_not_resolved"},
    {CURLE_COULDNT_RESOLVE_PROXY, "proxy_failed"},
    {CURLE_PROXY, "proxy_failed"},
    {CURLE_SSL_CONNECT_ERROR, "tls_failed"},
    {CURLE_PEER_FAILED_VERIFICATION, "tls_failed"},
    {CURLE_SSL_CACERT_BADFILE, "tls_failed"},
    {CURLE_SSL_CERTPROBLEM, "tls_failed"},
    {CURLE_SSL_CIPHER, "tls_failed"},
    {CURLE_GOT_NOTHING, "cut_off"},
    {CURLE_PARTIAL_FILE, "cut_off"},
    {CURLE_RECV_ERROR, "cut_off"},
    {CURLE_SEND_ERROR, "cut_off"},
    {CURLE_WEIRD_SERVER_REPLY, "bad_answer"},
    {CURLE_UNSUPPORTED_PROTOCOL, "bad_answer"},
    {CURLE_BAD_CONTENT_ENCODING, "bad_answer"},
    {CURLE_OUT_OF_MEMORY, "out_of_memory"},
};

static const char *code_of(const struct http_exchange *exchange)
{
    if (exchange->outcome == CURLE_COULDNT_CONNECT) {
        if (exchange->sent) // an earlier connection ended before the answer
            return "cut_off";
        return exchange->proxy ? "proxy_failed" : connect_code(exchange);
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].outcome == exchange->outcome)
            return codes[i].code;
    return "connection_failed";
}

// Explains the status with which a proxy refused: authentication, a forbidden place, or a temporary failure.
static int explain_refusal(const struct http_exchange *exchange, long status, struct error *error)
{
    bool passing = status == 408 || status == 429 || status >= 500;
    return error_set(error, passing ? "proxy_failed" : "proxy_refused", 0, "%s refused to connect to %s (status %ld%s)",
                     exchange->proxy, exchange->origin, status,
                     status == 407   ? ": it wants a user name and a password"
                     : status == 401 ? ": it does not take the user name and password"
                                     : "");
}

// Advice about a TLS failure. The usual cause is a private certificate authority that is not trusted.
static const char *tls_advice(const struct http_exchange *exchange)
{
    if (exchange->outcome == CURLE_PEER_FAILED_VERIFICATION && strstr(exchange->curl_message, "issuer"))
        return "; SSL_CERT_FILE or SSL_CERT_DIR names the authorities that are trusted";
    if (exchange->outcome == CURLE_SSL_CONNECT_ERROR && strstr(exchange->curl_message, "wrong version number"))
        return "; it may not speak TLS, then the URL begins with http://";
    return "";
}

// Why the connection to a unix socket failed. Curl's message would name a host and a port.
static const char *socket_problem(const struct http_exchange *exchange)
{
    int number = connect_errno(exchange);
    if (number == EACCES)
        return "Permission denied; the runner's user must be able to write to it";
    if (number == ENOENT)
        return "there is no such socket";
    if (number == ECONNREFUSED)
        return "Connection refused; no process listens on it";
    return is_queue_full(exchange, number) ? "it takes no more connections at the moment" : strerror(number);
}

int http_explain(const struct http_exchange *exchange, struct error *error)
{
    if (exchange->stop != HTTP_STOP_NONE)
        return explain_stop(exchange, error);
    long connect_status = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_HTTP_CONNECTCODE, &connect_status);
    if (exchange->proxy && connect_status >= 300)
        return explain_refusal(exchange, connect_status, error);
    const char *code = code_of(exchange), *says = exchange->curl_message;
    if (exchange->is_socket && exchange->outcome == CURLE_COULDNT_CONNECT && !exchange->sent)
        says = socket_problem(exchange);
    return error_set(error, code, 0, "the request to %s%s%s failed: %s%s", exchange->origin,
                     exchange->proxy ? " through " : "", exchange->proxy ? exchange->proxy : "",
                     *says ? says : curl_easy_strerror(exchange->outcome), tls_advice(exchange));
}

int http_check_proxy(const struct http_exchange *exchange, int status, struct error *error)
{
    return status == 407 && exchange->proxy ? explain_refusal(exchange, status, error) : status;
}
