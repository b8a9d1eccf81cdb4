#include "median.h"

#include <stdio.h>

static int failures;

static void expect(double wanted, double found, const char *what)
{
    if (wanted == found) {
        printf("ok      %s\n", what);
        return;
    }
    printf("FAILED  %s: wanted %g, found %g\n", what, wanted, found);
    failures++;
}

int main(void)
{
    double one[] = {7};
    double odd[] = {9, 1, 5};
    double even[] = {4, 1, 3, 2};

    expect(7, median(one, 1), "one value");
    expect(5, median(odd, 3), "an odd number of values");
    expect(2.5, median(even, 4), "an even number of values");
    return failures > 0;
}
