// SPDX-License-Identifier: Apache-2.0
// cmocka, what it and nearly every test of core/ includes, a temporary directory for a group of tests, and bytes
// compared.
#ifndef SBA_TESTS_CHECK_H
#define SBA_TESTS_CHECK_H

#include "core/base/buffer.h"

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

extern char directory[]; // the path of the temporary directory, from make_directory on

// Set-up and tear-down of a group.
int make_directory(void **state);
int remove_directory(void **state);

// The path of a file in it; valid until the next call.
const char *in_directory(const char *name);

// Writes a file.
void put(const char *path, const char *content);

// Fails the test unless the buffer holds these bytes.
void check_bytes(const struct buffer *got, const char *wanted, size_t size);

#endif
