// SPDX-License-Identifier: Apache-2.0
// A temporary directory for a group of tests.
#ifndef SBA_TESTS_CHECK_DIRECTORY_H
#define SBA_TESTS_CHECK_DIRECTORY_H

#include "check.h"

extern char directory[]; // its path, from make_directory on

// Set-up and tear-down of a group.
int make_directory(void **state);
int remove_directory(void **state);

// The path of a file in it; valid until the next call.
const char *in_directory(const char *name);

// Writes a file.
void put(const char *path, const char *content);

#endif
