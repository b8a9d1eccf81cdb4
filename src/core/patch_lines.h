// SPDX-License-Identifier: Apache-2.0
// Finding a hunk by its lines alone, where its numbers say nothing or nothing fits there.
#ifndef SBA_CORE_PATCH_LINES_H
#define SBA_CORE_PATCH_LINES_H

#include "core/patch_find.h"

// Finds the only place of hunk number (from 0) of the file: its lines as they are (where it has no numbers), then
// loosely. loose is the image again, made when first needed, to be freed by patch_lines_free. 1 found, and *tolerated
// says how; 0 not; -1 and *error: patch_ambiguous, already_applied, patch_mismatch and what patch_find has.
int patch_find_by_lines(const struct patch *patch, const struct patch_file *file, uint32_t number,
                        struct patch_search *search, struct patch_image *loose, unsigned *tolerated,
                        struct error *error);

void patch_lines_free(struct patch_image *loose);

#endif
