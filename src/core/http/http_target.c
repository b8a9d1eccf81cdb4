// SPDX-License-Identifier: Apache-2.0
// Where a request goes: URL, unix socket, proxy and trust. See http.h.
#include "core/http/http_internal.h"

#include "core/base/cleanup.h"
#include "core/http/no_proxy.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

// Where images keep the certificates that they trust: Debian and Alpine, Fedora, openSUSE, others.
static const char *const ca_files[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

static void set_trust(const struct http_exchange *exchange)
{
    const struct http_settings *settings = &exchange->client->settings;
    const char *file = settings->ca_file;
    for (size_t i = 0; !file && !settings->ca_directory && i < sizeof ca_files / sizeof *ca_files; i++)
        if (access(ca_files[i], R_OK) == 0)
            file = ca_files[i];
    curl_easy_setopt(exchange->easy, CURLOPT_CAINFO, file);
    curl_easy_setopt(exchange->easy, CURLOPT_CAPATH, settings->ca_directory);
}

static void free_part(char **part)
{
    curl_free(*part);
}

#define cleanup_part __attribute__((cleanup(free_part)))

static char *part(CURLU *parsed, CURLUPart which, unsigned flags)
{
    char *text = NULL;
    return curl_url_get(parsed, which, &text, flags) == CURLUE_OK ? text : NULL;
}

// Whether an @ stands after the host. Then what stands before it may be a password with a raw /, ? or #, of which
// messages would quote the beginning as the host.
static bool has_late_at(const char *url)
{
    const char *scheme = strstr(url, "://"), *authority = scheme ? scheme + 3 : url;
    return strchr(authority + strcspn(authority, "/?#"), '@');
}

static int bad_proxy(struct error *error, const char *why)
{
    return error_set(error, "proxy_refused", 0, "the address of the proxy %s", why);
}

// Gives curl the address without user and password, which go apart: curl's messages quote the address.
static int set_proxy_parts(struct http_exchange *exchange, CURLU *parsed, struct error *error)
{
    static const CURLUPart left_out[] = {CURLUPART_USER,  CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                                         CURLUPART_QUERY, CURLUPART_FRAGMENT, CURLUPART_PATH};
    cleanup_part char *user = part(parsed, CURLUPART_USER, CURLU_URLDECODE);
    cleanup_part char *password = part(parsed, CURLUPART_PASSWORD, CURLU_URLDECODE);
    curl_easy_setopt(exchange->easy, CURLOPT_PROXYUSERNAME, user);
    curl_easy_setopt(exchange->easy, CURLOPT_PROXYPASSWORD, password);
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        curl_url_set(parsed, left_out[i], NULL, 0);
    cleanup_part char *address = part(parsed, CURLUPART_URL, 0);
    int length = address ? (int)strlen(address) - 1 : 0; // without the / of an empty path
    curl_easy_setopt(exchange->easy, CURLOPT_PROXY, address);
    if (!address || asprintf(&exchange->proxy, "the proxy %.*s", length, address) < 0)
        return error_memory(error, "cannot start a request");
    return 0;
}

static int set_proxy_address(struct http_exchange *exchange, const char *proxy, struct error *error)
{
    if (has_late_at(proxy))
        return bad_proxy(error, "has an @ after its host; write / ? # and @ of a password as %2F %3F %23 and %40");
    CURLU *parsed = curl_url();
    CURLUcode code = curl_url_set(parsed, CURLUPART_URL, proxy, CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME);
    int outcome = code == CURLUE_OK ? set_proxy_parts(exchange, parsed, error)
                                    : bad_proxy(error, "cannot be read; write http://host:port");
    curl_url_cleanup(parsed);
    return outcome;
}

static int set_proxy(struct http_exchange *exchange, const char *scheme, const char *host, const char *port,
                     struct error *error)
{
    static const char loopback[] = "localhost,127.0.0.0/8,::1";
    const struct http_settings *settings = &exchange->client->settings;
    const char *proxy = strcmp(scheme, "https") == 0 ? settings->https_proxy : settings->http_proxy;
    // We check the list, not curl, to know who failed. An empty string keeps curl from reading the environment.
    if (!proxy || no_proxy_names(loopback, host, port) || no_proxy_names(settings->no_proxy, host, port)) {
        curl_easy_setopt(exchange->easy, CURLOPT_PROXY, "");
        return 0;
    }
    if (set_proxy_address(exchange, proxy, error) < 0)
        return -1;
    curl_easy_setopt(exchange->easy, CURLOPT_NOPROXY, "");
    // Some proxies close the connection after an answer without saying so. A request sent only once would be lost then.
    curl_easy_setopt(exchange->easy, CURLOPT_FRESH_CONNECT,
                     exchange->request.once && strcmp(scheme, "http") == 0 ? 1L : 0L);
    return 0;
}

static int bad_url(struct error *error, const char *why)
{
    return error_set(error, "invalid_url", 0, "the URL %s; write http://, https:// or http+unix://%%2Fpath%%2Fto.sock/",
                     why);
}

// http+unix://%2Frun%2Fa.sock/v1/x: the host is the socket's path, percent-encoded.
static int set_socket(struct http_exchange *exchange, const char *rest, struct error *error)
{
    size_t encoded = strcspn(rest, "/?#");
    int length = 0;
    cleanup_part char *path = curl_easy_unescape(exchange->easy, rest, (int)encoded, &length);
    cleanup_free char *url = NULL;
    if (!path || length == 0 || path[0] != '/' || strlen(path) != (size_t)length)
        return bad_url(error, "names no unix socket by its absolute path");
    if ((size_t)length >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return bad_url(error, "names a unix socket whose path is longer than the 107 bytes that Linux allows");
    if (asprintf(&url, "http://localhost%s%s", rest[encoded] == '/' ? "" : "/", rest + encoded) < 0 ||
        asprintf(&exchange->origin, "the socket %s", path) < 0)
        return error_memory(error, "cannot start a request");
    exchange->is_socket = true;
    curl_easy_setopt(exchange->easy, CURLOPT_UNIX_SOCKET_PATH, path);
    curl_easy_setopt(exchange->easy, CURLOPT_URL, url);
    curl_easy_setopt(exchange->easy, CURLOPT_PROXY, "");
    return 0;
}

static int set_origin(struct http_exchange *exchange, const char *url, CURLU *parsed, struct error *error)
{
    if (has_late_at(url))
        return error_set(error, "invalid_url", 0,
                         "the URL has an @ after its host: a user name and a password are not "
                         "taken, and an @ of a path is written %%40");
    if (curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK)
        return bad_url(error, "cannot be read");
    cleanup_part char *scheme = part(parsed, CURLUPART_SCHEME, 0), *host = part(parsed, CURLUPART_HOST, 0);
    cleanup_part char *port = part(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT), *user = part(parsed, CURLUPART_USER, 0);
    if (!scheme || !host || !port || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        return bad_url(error, "has another scheme");
    if (user)
        return bad_url(error, "holds a user name, which is not taken");
    if (asprintf(&exchange->origin, "%s://%s:%s", scheme, host, port) < 0)
        return error_memory(error, "cannot start a request");
    return set_proxy(exchange, scheme, host, port, error);
}

int http_set_target(struct http_exchange *exchange, const char *url, struct error *error)
{
    static const char unix_scheme[] = "http+unix://";
    if (strncasecmp(url, unix_scheme, sizeof unix_scheme - 1) == 0)
        return set_socket(exchange, url + sizeof unix_scheme - 1, error);
    CURLU *parsed = curl_url();
    int outcome = set_origin(exchange, url, parsed, error);
    curl_url_cleanup(parsed);
    curl_easy_setopt(exchange->easy, CURLOPT_URL, url);
    set_trust(exchange);
    return outcome;
}
