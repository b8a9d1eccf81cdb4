// SPDX-License-Identifier: Apache-2.0
// Reading the form of a patch that language models are taught: "*** Begin Patch" to "*** End Patch".
#ifndef SBA_CORE_PATCH_BEGIN_H
#define SBA_CORE_PATCH_BEGIN_H

#include "core/patch.h"
#include "core/patch_reader.h"

// Whether such a patch is next: its first line, and one for a file after it.
bool patch_at_begin(const struct patch_reader *reader);

// Reads it whole, and goes past its last line. Names are taken as they are. Its hunks are found by their lines.
int patch_read_begin(struct patch_reader *reader, struct patch *patch, struct error *error);

#endif
