#include "roman.h"

#include <string.h>

static const struct {
    int value;
    const char *letters;
} digits[] = {
    {1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"},
    {50, "L"},   {40, "XL"},  {10, "X"},  {9, "IX"},   {5, "V"},   {1, "I"},
};

size_t roman(int number, char *to, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        for (; number >= digits[i].value; number -= digits[i].value) {
            size_t more = strlen(digits[i].letters);
            if (length + more >= size)
                return 0;
            memcpy(to + length, digits[i].letters, more);
            length += more;
        }
    }
    to[length] = '\0';
    return length;
}
