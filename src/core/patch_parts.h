// SPDX-License-Identifier: Apache-2.0
// Adding files and hunks to a patch that is being read.
#ifndef SBA_CORE_PATCH_PARTS_H
#define SBA_CORE_PATCH_PARTS_H

#include "core/patch.h"

// One more, empty; NULL and *error: there are too many, or memory is out. It moves when the next is added.
struct patch_file *patch_add_file(struct patch *patch, struct error *error);
struct patch_hunk *patch_add_hunk(struct patch *patch, struct error *error);

#endif
