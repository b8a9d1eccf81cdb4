// SPDX-License-Identifier: Apache-2.0
// Reading the lines before the hunks of a file.
#ifndef SBA_CORE_PATCH_HEADER_H
#define SBA_CORE_PATCH_HEADER_H

#include "core/patch.h"
#include "core/patch_reader.h"

// Reads "diff --git" and the lines that extend it, or "---" and "+++", as far as the first hunk.
int patch_read_git_header(struct patch_reader *reader, struct patch_file *file, struct error *error);
// Whether git's lines for a file are next without "diff --git" before them: both names of a rename or copy, or modes
// right above "---" and "+++".
bool patch_at_extensions(const struct patch_reader *reader);
int patch_read_bare_git_header(struct patch_reader *reader, struct patch_file *file, struct error *error);

int patch_read_names(struct patch_reader *reader, struct patch_file *file, struct error *error);

// Fills error with binary_patch. Returns -1.
int patch_refuse_binary(const struct patch_reader *reader, struct error *error);

#endif
