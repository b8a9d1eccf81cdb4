#include "utf8.h"

int utf8_bytes(unsigned long point)
{
    if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return 0;
    return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}
