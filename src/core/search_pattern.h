// SPDX-License-Identifier: Apache-2.0
// Prepares a pattern to be matched against many lines at once.
#ifndef SBA_CORE_SEARCH_PATTERN_H
#define SBA_CORE_SEARCH_PATTERN_H

#include "core/buffer.h"

#include <stdbool.h>

// Rewrites a valid pattern so that nothing in it can match a newline ([^"] becomes [^\n"], \s becomes [^\S\n], ...).
// With PCRE2_MULTILINE it then finds in a whole text what the original finds in the lines one by one. False if that is
// not known to be possible (options inside the pattern, \x, \p, POSIX classes with spaces, ...) or memory is out: then
// the lines must be matched one by one.
bool search_pattern_for_lines(const char *pattern, size_t size, struct buffer *rewritten);

// Finds the longest text that every match has, if it helps to search for it first: three bytes or more, not at the
// pattern's start, which PCRE2 looks for itself. Only for case-sensitive patterns that search_pattern_for_lines
// accepts. False: there is none.
bool search_pattern_literal(const char *pattern, size_t size, struct buffer *literal);

#endif
