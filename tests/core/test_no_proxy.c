// SPDX-License-Identifier: Apache-2.0
// Which hosts a NO_PROXY list names.
#include "core/http/no_proxy.h"

#include "check.h"

static void names_and_what_is_below_them(void **state)
{
    assert_true(no_proxy_names("example.org", "example.org"));
    assert_true(no_proxy_names("example.org", "a.b.EXAMPLE.org"));
    assert_true(no_proxy_names(".example.org", "example.org"));
    assert_true(no_proxy_names(" x, .Example.org. ,y", "a.example.org."));
    assert_true(no_proxy_names("x gateway", "gateway"));
    assert_true(no_proxy_names("*", "anything"));
    assert_false(no_proxy_names("example.org", "badexample.org"));
    assert_false(no_proxy_names("a.example.org", "example.org"));
    assert_false(no_proxy_names("org.example", "example.org"));
    assert_false(no_proxy_names("*.org", "example.org"));
}

static void addresses_and_networks(void **state)
{
    assert_true(no_proxy_names("192.0.2.7", "192.0.2.7"));
    assert_true(no_proxy_names("a,192.0.2.0/24", "192.0.2.255"));
    assert_true(no_proxy_names("192.0.2.128/25", "192.0.2.129"));
    assert_true(no_proxy_names("0.0.0.0/0", "198.51.100.1"));
    assert_true(no_proxy_names("2001:db8::1", "[2001:DB8:0::1]"));
    assert_true(no_proxy_names("[2001:db8::1]", "[2001:db8::1]"));
    assert_true(no_proxy_names("2001:db8::/33", "[2001:db8:7fff::1]"));
    assert_true(no_proxy_names("*", "192.0.2.7"));
    assert_false(no_proxy_names("192.0.2.128/25", "192.0.2.127"));
    assert_false(no_proxy_names("2001:db8::/33", "[2001:db8:8000::1]"));
    assert_false(no_proxy_names("0.2.7", "192.0.2.7"));
    assert_false(no_proxy_names("192.0.2.0/24", "192.0.2.0.example.org"));
}

static void what_is_none(void **state)
{
    assert_false(no_proxy_names(NULL, "example.org"));
    assert_false(no_proxy_names("", "example.org"));
    assert_false(no_proxy_names(" , ,, ", "example.org"));
    assert_false(no_proxy_names(".", "example.org"));
    const char *networks[] = {"192.0.2.0/", "192.0.2.0/33", "192.0.2.0/-1", "192.0.2.0/2x", "/24", "192.0.2/24"};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        assert_false(no_proxy_names(networks[i], "192.0.2.0"));
    assert_false(no_proxy_names("0123456789012345678901234567890123456789012345678901234567890123456789", "192.0.2.0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_what_is_below_them),
        cmocka_unit_test(addresses_and_networks),
        cmocka_unit_test(what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
