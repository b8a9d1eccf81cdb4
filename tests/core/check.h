// SPDX-License-Identifier: Apache-2.0
// cmocka, and what it and nearly every test of core/ includes.
#ifndef SBA_TESTS_CHECK_H
#define SBA_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#endif
