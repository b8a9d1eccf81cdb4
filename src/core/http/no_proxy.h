// SPDX-License-Identifier: Apache-2.0
// Which hosts are exempt from the proxy by a NO_PROXY list. Cannot fail: what is not a name, address or network matches
// nothing.
#ifndef SBA_CORE_NO_PROXY_H
#define SBA_CORE_NO_PROXY_H

#include <stdbool.h>

// Whether a list, separated by commas or blanks, matches a host and a port. "example.org", ".example.org" and
// "*.example.org" match that host and its subdomains, "192.0.2.0/24" and "2001:db8::/32" a network, "*" everything;
// what ends in a port (":8080") matches with that port only. host: a name, an IPv4 address, or an IPv6 address in
// brackets. port: its digits. list may be NULL.
bool no_proxy_names(const char *list, const char *host, const char *port);

#endif
