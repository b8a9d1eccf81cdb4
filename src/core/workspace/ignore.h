// SPDX-License-Identifier: Apache-2.0
// Rules of .gitignore files, as in gitignore(5).
#ifndef SBA_CORE_IGNORE_H
#define SBA_CORE_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

struct ignore {
    struct ignore_rule *rules; // owned
    size_t count;
};

// Adds the rules of a directory's .gitignore. Those of a directory come after those of its parents. directory:
// relative; "": the first. Lines that git would not understand are skipped. 0; -1: memory is out.
int ignore_add(struct ignore *ignore, const char *directory, const char *text, size_t size);

// Whether a rule ignores a relative path itself. What is in an ignored directory is ignored too; that is up to the
// caller.
bool ignore_matches(const struct ignore *ignore, const char *path, bool is_directory);

void ignore_free(struct ignore *ignore);

#endif
