#include <stdio.h>
#include <stdlib.h>

static unsigned step(unsigned n)
{
    return n & 1 ? n * 3 + 1 : n >> 1;
}

int main(int argc, char **argv)
{
    unsigned limit = argc > 1 ? strtoul(argv[1], NULL, 0) : 10, best = 0, longest = 0;
    for (unsigned start = 1; start < limit; start++) {
        unsigned steps = 0;
        for (unsigned n = start; n != 1; n = step(n))
            steps++;
        if (steps >= longest)
            best = start, longest = steps;
    }
    printf("%u\n", best * 1000 + longest);
}
