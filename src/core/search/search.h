// SPDX-License-Identifier: Apache-2.0
// Regular expressions over the lines of files (PCRE2, UTF-8).
//
// A pattern is matched against each line by itself and never sees the line's end, \n or \r\n. Bytes that are not UTF-8
// match nothing and do not disturb what is around them. Errors as in error.h. "timeout" and "cancelled" come from the
// interrupt, within milliseconds.
#ifndef SBA_CORE_SEARCH_H
#define SBA_CORE_SEARCH_H

#include "core/base/buffer.h"
#include "core/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct glob;
struct workspace;
struct search_regex;

// Compiles a pattern of size bytes. Errors: "invalid_pattern" (the message has the place), "out_of_memory".
struct search_regex *search_compile(const char *pattern, size_t size, bool ignore_case, struct error *error);

// NULL is allowed.
void search_regex_free(struct search_regex *regex);

enum search_limit { SEARCH_NO_LIMIT, SEARCH_MATCHES, SEARCH_BYTES };

// The matching lines, as UTF-8 without secrets. A long line is cut around its first match.
struct search_results {
    uint64_t max_matches; // to be set before
    uint64_t max_bytes;   // likewise: of json
    size_t count;
    struct buffer json;       // {"path":"a/b","line":1,"text":"..."}, each with a comma behind it
    struct buffer shown;      // the same as grep shows it: a/b:1:...
    int64_t files_searched;   // text files that were read
    int64_t files_unreadable; // below the start: no permission, or a disk error
    enum search_limit limit;  // what cut the search short
};

void search_results_free(struct search_results *results);

// Searches an open regular file from where it stands and adds its matching lines. A binary file (a NUL in its first 8
// KiB) is skipped. path (UTF-8) is its name in results and errors. Returns 0 early when a limit is reached. Errors:
// "pattern_too_costly" (the message has the line), "io_error", "timeout", "cancelled", "out_of_memory".
int search_descriptor(struct search_regex *regex, int fd, const char *path, struct search_results *results,
                      struct error *error);

// Searches the file that path names in the workspace, or the regular files below the directory that it names, in the
// order of workspace_tree.h. Links are not followed; directories named .git are skipped. include (NULL: all) selects
// files by name or path. Errors: those of search_descriptor and, for path itself, of the workspace. What cannot be read
// below it is counted.
int search_files(struct search_regex *regex, const struct workspace *workspace, const char *path,
                 const struct glob *include, struct search_results *results, struct error *error);

#endif
