#include <stdio.h>

int main(void)
{
    puts("helo");
    return 0;
}
