// SPDX-License-Identifier: Apache-2.0
// Adding files and hunks to a patch, see patch_parts.h.
#include "core/patch_parts.h"

#include <stdlib.h>

// Makes room for one more at count, a power of two at a time. Returns the array, or NULL (the old one is kept).
static void *grow(void *array, uint32_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    return realloc(array, (count ? (size_t)count * 2 : 1) * size);
}

struct patch_file *patch_add_file(struct patch *patch, struct error *error)
{
    if (patch->file_count == PATCH_MAX_FILES) {
        error_set(error, "too_large", 0, "the diff is of more than %d files", PATCH_MAX_FILES);
        return NULL;
    }
    struct patch_file *files = grow(patch->files, patch->file_count, sizeof *files);
    if (!files) {
        error_set(error, "out_of_memory", 0, "not enough memory for the diff");
        return NULL;
    }
    patch->files = files;
    files[patch->file_count] = (struct patch_file){0};
    return &files[patch->file_count++];
}

struct patch_hunk *patch_add_hunk(struct patch *patch, struct error *error)
{
    if (patch->hunk_count == PATCH_MAX_HUNKS) {
        error_set(error, "too_large", 0, "the diff has more than %d hunks", PATCH_MAX_HUNKS);
        return NULL;
    }
    struct patch_hunk *hunks = grow(patch->hunks, patch->hunk_count, sizeof *hunks);
    if (!hunks) {
        error_set(error, "out_of_memory", 0, "not enough memory for the diff");
        return NULL;
    }
    patch->hunks = hunks;
    hunks[patch->hunk_count] = (struct patch_hunk){0};
    return &hunks[patch->hunk_count++];
}
