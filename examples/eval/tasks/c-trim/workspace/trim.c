#include <string.h>

/* Removes blanks at both ends, in place, and returns its argument. */
char *trim(char *text)
{
    char *from = text, *to = text + strlen(text) - 1;
    while (strchr(" \t\n", *from))
        from++;
    while (strchr(" \t\n", *to))
        to--;
    to[1] = '\0';
    return memmove(text, from, to - from + 2);
}
