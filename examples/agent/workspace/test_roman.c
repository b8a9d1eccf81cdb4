#include "roman.h"

#include <stdio.h>
#include <string.h>

static int failures;

static void check(int number, const char *expected)
{
    char found[32];
    roman(number, found, sizeof found);
    if (strcmp(found, expected) != 0) {
        printf("%d: expected %s, found %s\n", number, expected, found);
        failures++;
    }
}

int main(void)
{
    check(1, "I");
    check(4, "IV");
    check(9, "IX");
    check(14, "XIV");
    check(1994, "MCMXCIV");
    check(2026, "MMXXVI");
    puts(failures ? "FAILED" : "all tests pass");
    return failures != 0;
}
