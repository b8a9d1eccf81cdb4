// SPDX-License-Identifier: Apache-2.0
// Which hosts a NO_PROXY list keeps from the proxy. Cannot fail: what is no name, address or network names nobody.
#ifndef SBA_CORE_NO_PROXY_H
#define SBA_CORE_NO_PROXY_H

#include <stdbool.h>

// Whether a list, separated by commas or blanks, names a host. "example.org" and ".example.org" name that host and all
// below it, "192.0.2.0/24" and "2001:db8::/32" a network, "*" all. host: a name, an IPv4 address, or an IPv6 address in
// brackets. list may be NULL.
bool no_proxy_names(const char *list, const char *host);

#endif
