#include <stdio.h>

static unsigned checksum(const char *text)
{
    unsigned sum = 5381;
    while (*text)
        sum = sum * 33 + (unsigned char)*text++;
    return sum;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        printf("%08x %s\n", checksum(argv[i]), argv[i]);
}
