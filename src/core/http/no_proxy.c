// SPDX-License-Identifier: Apache-2.0
// Matches hosts with a NO_PROXY list, see no_proxy.h. Case is ignored, and so is a dot at either end of a name.
#include "core/http/no_proxy.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct address {
    int family; // 0: none
    unsigned char bytes[sizeof(struct in6_addr)];
};

static struct address parse_address(const char *text, size_t size)
{
    struct address address = {0};
    char copy[INET6_ADDRSTRLEN];
    if (size >= 2 && text[0] == '[' && text[size - 1] == ']')
        text++, size -= 2;
    if (size >= sizeof copy)
        return address;
    memcpy(copy, text, size);
    copy[size] = 0;
    if (inet_pton(AF_INET, copy, address.bytes) == 1)
        address.family = AF_INET;
    else if (inet_pton(AF_INET6, copy, address.bytes) == 1)
        address.family = AF_INET6;
    return address;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, long bits)
{
    size_t whole = (size_t)bits / 8;
    unsigned mask = 0xff00u >> (bits % 8) & 0xff;
    return memcmp(a, b, whole) == 0 && (mask == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

// Whether a token is the host's address, or a network that contains it.
static bool names_address(const char *token, size_t size, const struct address *host)
{
    const char *slash = memchr(token, '/', size);
    struct address address = parse_address(token, slash ? (size_t)(slash - token) : size);
    if (address.family == 0 || address.family != host->family)
        return false;
    long all = address.family == AF_INET ? 32 : 128, bits = all;
    if (slash) {
        char *end;
        bits = strtol(slash + 1, &end, 10);
        if (end == slash + 1 || end != token + size || bits < 0 || bits > all)
            return false;
    }
    return same_bits(address.bytes, host->bytes, bits);
}

// Whether a token is the host's name or one of its parent domains.
static bool names_domain(const char *token, size_t size, const char *host)
{
    size_t length = strlen(host);
    if (length > 1 && host[length - 1] == '.')
        length--;
    if (size > 1 && token[size - 1] == '.')
        size--;
    if (size > 2 && token[0] == '*' && token[1] == '.')
        token++, size--;
    if (size > 1 && token[0] == '.')
        token++, size--;
    if (size == 0 || size > length || strncasecmp(host + length - size, token, size) != 0)
        return false;
    return size == length || host[length - size - 1] == '.';
}

// The size of a token without its port; 0: that is another one. The colons of "2001:db8::1" begin none.
static size_t without_port(const char *token, size_t size, const char *port)
{
    const char *colon = memrchr(token, ':', size);
    if (!colon || (memchr(token, ':', (size_t)(colon - token)) && colon[-1] != ']'))
        return size;
    size_t before = (size_t)(colon - token), digits = size - before - 1;
    return digits == strlen(port) && memcmp(colon + 1, port, digits) == 0 ? before : 0;
}

bool no_proxy_names(const char *list, const char *host, const char *port)
{
    static const char separators[] = ", \t";
    struct address address = parse_address(host, strlen(host));
    for (const char *token = list; token && *(token += strspn(token, separators));) {
        size_t all = strcspn(token, separators), size = without_port(token, all, port);
        if ((size == 1 && *token == '*') ||
            (address.family ? names_address(token, size, &address) : names_domain(token, size, host)))
            return true;
        token += all;
    }
    return false;
}
