// SPDX-License-Identifier: Apache-2.0
// Which hosts a NO_PROXY list names.
#include "core/http/no_proxy.h"

#include "check.h"

static bool named(const char *list, const char *host)
{
    return no_proxy_names(list, host, "80");
}

static void names_and_what_is_below_them(void **state)
{
    assert_true(named("example.org", "example.org"));
    assert_true(named("example.org", "a.b.EXAMPLE.org"));
    assert_true(named(".example.org", "example.org"));
    assert_true(named(" x, .Example.org. ,y", "a.example.org."));
    assert_true(named("x gateway", "gateway"));
    assert_true(named("*", "anything"));
    assert_true(named("*.example.org", "a.example.org"));
    assert_false(named("*.example.org", "badexample.org"));
    assert_false(named("a*.org", "ab.org"));
    assert_false(named("example.org", "badexample.org"));
    assert_false(named("a.example.org", "example.org"));
    assert_false(named("org.example", "example.org"));
}

static void addresses_and_networks(void **state)
{
    assert_true(named("192.0.2.7", "192.0.2.7"));
    assert_true(named("a,192.0.2.0/24", "192.0.2.255"));
    assert_true(named("192.0.2.128/25", "192.0.2.129"));
    assert_true(named("0.0.0.0/0", "198.51.100.1"));
    assert_true(named("2001:db8::1", "[2001:DB8:0::1]"));
    assert_true(named("[2001:db8::1]", "[2001:db8::1]"));
    assert_true(named("2001:db8::/33", "[2001:db8:7fff::1]"));
    assert_true(named("*", "192.0.2.7"));
    assert_false(named("192.0.2.128/25", "192.0.2.127"));
    assert_false(named("2001:db8::/33", "[2001:db8:8000::1]"));
    assert_false(named("0.2.7", "192.0.2.7"));
    assert_false(named("192.0.2.0/24", "192.0.2.0.example.org"));
}

static void a_port(void **state)
{
    static const char *const lists[] = {"example.org:8080", ".org:8080", "x:1, *:8080", "*.org:8080"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_true(no_proxy_names(lists[i], "example.org", "8080"));
        assert_false(no_proxy_names(lists[i], "example.org", "808"));
    }
    assert_true(no_proxy_names("192.0.2.7:8080", "192.0.2.7", "8080"));
    assert_true(no_proxy_names("[2001:db8::1]:8080", "[2001:db8::1]", "8080"));
    assert_false(no_proxy_names("[2001:db8::1]:80", "[2001:db8::1]", "8080"));
    assert_true(no_proxy_names("2001:db8::80", "[2001:db8::80]", "8080"));
    assert_false(no_proxy_names("example.org:", "example.org", "80"));
    assert_false(no_proxy_names(":80", "example.org", "80"));
}

static void what_is_none(void **state)
{
    assert_false(named(NULL, "example.org"));
    assert_false(named("", "example.org"));
    assert_false(named(" , ,, ", "example.org"));
    assert_false(named(".", "example.org"));
    const char *networks[] = {"192.0.2.0/", "192.0.2.0/33", "192.0.2.0/-1", "192.0.2.0/2x", "/24", "192.0.2/24"};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        assert_false(named(networks[i], "192.0.2.0"));
    assert_false(named("0123456789012345678901234567890123456789012345678901234567890123456789", "192.0.2.0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_what_is_below_them),
        cmocka_unit_test(addresses_and_networks),
        cmocka_unit_test(a_port),
        cmocka_unit_test(what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
