// SPDX-License-Identifier: Apache-2.0
// What search.c and search_regex.c share, and nobody else.
#ifndef SBA_CORE_SEARCH_INTERNAL_H
#define SBA_CORE_SEARCH_INTERNAL_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/search/search.h"

#include <pcre2.h>
#include <stddef.h>

struct search_regex {
    pcre2_code *line;  // matches one line of any length and checks the deadline meanwhile
    pcre2_code *lines; // matches many short lines at once; NULL: not possible
    pcre2_code *tail;  // finds the text with which each match ends; NULL: unknown
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    struct buffer piece; // of a file, kept from file to file
    struct buffer path;  // of the file without secrets, from its first match on
};

// One file being searched.
struct scan {
    struct search_regex *regex;
    const char *path;
    struct search_results *results;
    struct error *error;
    size_t room;  // bytes of the file to have at a time
    bool ended;   // all of the file has been read
    int64_t line; // number of the line that begins at counted
    const char *counted;
    int64_t last;      // line of the last match
    unsigned rechecks; // of lines that a match left
    // Milliseconds of the coarse clock: when the match of a line began, and the last check of the deadline.
    int64_t began, checked;
    unsigned callouts;
};

struct span {
    size_t start, end;
};

// Finds the first match that begins at from or later: 1 and *found, 0, or -1 ("pattern_too_costly", with the number of
// the line of from, "timeout", "cancelled").
int search_match(struct scan *scan, const pcre2_code *code, const char *bytes, size_t size, size_t from,
                 struct span *found);

#endif
