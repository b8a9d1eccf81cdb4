// SPDX-License-Identifier: Apache-2.0
// What the search*.c files share, and nobody else.
#ifndef SBA_CORE_SEARCH_INTERNAL_H
#define SBA_CORE_SEARCH_INTERNAL_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/search.h"

#include <pcre2.h>
#include <stddef.h>

struct search_regex {
    pcre2_code *line;    // matches one line of any length and checks the deadline meanwhile
    pcre2_code *lines;   // matches many short lines; NULL: not possible
    pcre2_code *literal; // what every matching line has; NULL: not known, or no help
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    struct buffer piece; // of a file, kept from file to file
};

// One file being searched.
struct scan {
    struct search_regex *regex;
    const char *path;
    struct search_results *results;
    struct error *error;
    size_t path_at, path_size; // of the path in the results; size 0: not there yet
    int64_t line;              // number of the line that begins at counted
    const char *counted;
    int64_t last; // line of the last match
    // Milliseconds of the coarse clock: when the match of a line began, and the last check of the deadline.
    int64_t began, checked;
    unsigned callouts;
};

struct span {
    size_t start, end;
};

// "out_of_memory". Returns -1.
int search_out_of_memory(struct error *error);

// Finds the first match that begins at from or later: 1 and *found, 0, or -1 ("pattern_too_costly", with the number of
// the line of from, "timeout", "cancelled").
int search_match(struct scan *scan, const pcre2_code *code, const char *bytes, size_t size, size_t from,
                 struct span *found);

// Adds the line with the number scan->last, in which a match begins at start: 0; 1: it is not added because of a limit;
// -1.
int search_add_match(struct scan *scan, const char *line, size_t size, size_t start);

// Rewrites a valid pattern so that nothing in it can match a newline ([^"] becomes [^\n"], \s becomes [^\S\n], ...).
// With PCRE2_MULTILINE it then finds in a whole text what the original finds in the lines one by one. False if that is
// not known to be possible (options inside the pattern, \x, \p, POSIX classes with spaces, ...) or memory is out: then
// the lines must be matched one by one.
bool search_pattern_for_lines(const char *pattern, size_t size, struct buffer *rewritten);

// Finds the longest text that every match has, if it helps to search for it first: three bytes or more, not at the
// pattern's start, which PCRE2 looks for itself. Only for case-sensitive patterns that search_pattern_for_lines
// accepts. False: there is none.
bool search_pattern_literal(const char *pattern, size_t size, struct buffer *literal);

// Whether a byte continues a character of UTF-8.
static inline bool search_is_continuation(char byte)
{
    return (byte & 0xc0) == 0x80;
}

#endif
