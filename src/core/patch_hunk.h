// SPDX-License-Identifier: Apache-2.0
// Reading one hunk of a diff.
#ifndef SBA_CORE_PATCH_HUNK_H
#define SBA_CORE_PATCH_HUNK_H

#include "core/patch.h"
#include "core/patch_reader.h"

// Reads the hunk whose @@ line is next, and goes past it. Where its counts do not fit its body, the body is counted;
// where the body's end cannot be told, the diff is invalid_patch.
int patch_read_hunk(struct patch_reader *reader, const char *diff, struct patch_hunk *hunk, struct error *error);

// Whether the next line begins a hunk without line numbers: "@@", and maybe words or the line of a function.
bool patch_at_bare_hunk(const struct patch_reader *reader);

// Reads a hunk that is to be found by its lines: its @@ lines, if it has any, and its body. begin: the body may be
// anything but "@@" and "*** " at the start of a line, as in the form of "*** Begin Patch".
int patch_read_bare_hunk(struct patch_reader *reader, const char *diff, bool begin, struct patch_hunk *hunk,
                         struct error *error);

#endif
