#ifndef MEDIAN_H
#define MEDIAN_H

#include <stddef.h>

/* The median of count > 0 values, which are sorted by it. */
double median(double *values, size_t count);

#endif
