// SPDX-License-Identifier: Apache-2.0
// The rules of .gitignore files, as gitignore(5) has them.
#ifndef SBA_CORE_IGNORE_H
#define SBA_CORE_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

struct ignore {
    struct ignore_rule *rules; // owned
    size_t count;
};

// Adds the rules of a directory's .gitignore; those of a directory come after those of its parents. directory:
// relative,
// "" for the first. What git would not understand is left out. 0, or -1 where memory is out.
int ignore_add(struct ignore *ignore, const char *directory, const char *text, size_t size);

// Whether a relative path is ignored by a rule for itself. What lies in an ignored directory is ignored too, but that
// is the caller's to know.
bool ignore_matches(const struct ignore *ignore, const char *path, bool is_directory);

void ignore_free(struct ignore *ignore);

#endif
