// SPDX-License-Identifier: Apache-2.0
// Saying why a hunk fits nowhere, in one line.
#ifndef SBA_CORE_PATCH_EXPLAIN_H
#define SBA_CORE_PATCH_EXPLAIN_H

#include "core/patch_find.h"

// Fills error: already_applied where the hunk's new side is there, else patch_mismatch with the hunk, the first line
// that differs, and the place that fits best. number counts from 0. Returns -1.
int patch_explain_mismatch(const struct patch *patch, const struct patch_file *file, uint32_t number,
                           struct patch_search *search, struct error *error);

// Whether the file holds just what its one hunk, which only adds, would make.
bool patch_is_as_added(const struct patch *patch, const struct patch_file *file, const struct patch_image *image);

// Fills error for a file that is there although the diff says it is new: already_applied where it is as the diff would
// make it, else already_exists. Returns -1.
int patch_explain_exists(const struct patch *patch, const struct patch_file *file, const struct patch_image *image,
                         struct error *error);

// Fills error with patch_ambiguous for a hunk that fits in two places. Returns -1.
int patch_explain_ambiguous(const struct patch *patch, const struct patch_file *file, uint32_t number, int64_t place,
                            int64_t other, struct error *error);

#endif
