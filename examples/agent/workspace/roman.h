#ifndef ROMAN_H
#define ROMAN_H

#include <stddef.h>

/* Writes number (1 to 3999) as a Roman numeral into to, with a NUL. Returns its length, 0 where it does not fit. */
size_t roman(int number, char *to, size_t size);

#endif
