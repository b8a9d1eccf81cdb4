// SPDX-License-Identifier: Apache-2.0
// A temporary directory for a group of tests.
#ifndef SBA_TESTS_CHECK_FOLDER_H
#define SBA_TESTS_CHECK_FOLDER_H

#include "check.h"

extern char folder[]; // its path, from make_folder on

// Set-up and tear-down of a group.
int make_folder(void **state);
int remove_folder(void **state);

// The path of a file in it; valid until the next call.
const char *in_folder(const char *name);

// Writes a file.
void put(const char *path, const char *content);

#endif
