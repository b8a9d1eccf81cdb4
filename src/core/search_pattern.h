// SPDX-License-Identifier: Apache-2.0
// Makes a pattern fit to be matched against many lines at once.
#ifndef SBA_CORE_SEARCH_PATTERN_H
#define SBA_CORE_SEARCH_PATTERN_H

#include "core/buffer.h"

#include <stdbool.h>

// Rewrites a valid pattern so that nothing in it can match a newline ([^"] becomes [^\n"], \s becomes [^\S\n], ...).
// Matched against whole text with PCRE2_MULTILINE it then finds what the original finds in the lines one by one. False
// where this is not known to be possible (options set inside the pattern, \x, \p, POSIX classes with spaces, ...) or
// memory is out: then the lines must be matched one by one.
bool search_pattern_for_lines(const char *pattern, size_t size, struct buffer *rewritten);

// Finds the longest text that each match of the pattern holds, where searching for it first helps: three bytes or more,
// and not at the pattern's start, for which PCRE2 looks itself. Only for patterns that the function above took, with
// case. False where there is none.
bool search_pattern_literal(const char *pattern, size_t size, struct buffer *literal);

#endif
