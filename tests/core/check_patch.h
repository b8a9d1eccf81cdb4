// SPDX-License-Identifier: Apache-2.0
// What the tests of core/patch share: the bytes of one file, the first of a diff, and what the diff makes of them.
#ifndef SBA_TESTS_CHECK_PATCH_H
#define SBA_TESTS_CHECK_PATCH_H

#include "check.h"
#include "core/edit/patch.h"

#define X "--- a/x\n+++ b/x\n"

// Of the last diff: its report, the tolerated of the whole diff, and where it was refused "code: message".
extern struct patch_report report;
extern unsigned whole_tolerated;
extern char message[1024];

// What diff makes of bytes, NUL-terminated and owned; NULL where it was refused.
char *apply(const char *diff, size_t diff_size, const char *bytes, size_t size);

// Fails the test unless diff makes wanted of bytes.
void gives(const char *diff, const char *bytes, const char *wanted);

// Fails the test unless diff can be applied to bytes and adds so many lines. Frees both.
void adds(struct buffer *diff, struct buffer *bytes, uint32_t lines);

// Fails the test unless diff is refused with words in the one line of its message.
void refuses(const char *diff, const char *bytes, const char *words);

#endif
