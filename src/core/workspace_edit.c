// SPDX-License-Identifier: Apache-2.0
// Replaces a text in a file of any size, see transaction_replace in workspace_transaction.h.
#include "core/cleanup.h"
#include "core/workspace_replace.h"
#include "core/workspace_transaction_internal.h"

#include <errno.h>
#include <string.h>

enum { CHUNK = 64 * 1024 };

// A pass over a file. The window holds what was read and not yet written.
struct editing {
    const struct replacement *wanted;
    char *digest; // where the SHA-256 of the new file goes
    struct text_sha256 sha256;
    uint64_t found;
    int from; // the old file
    char *window;
    size_t size;
};

// Whether a second place overlaps with the one that was found.
static bool overlaps(const struct replacement *wanted, const char *place, const char *end)
{
    size_t span = 2 * wanted->old_size - 2; // bytes after the first that an overlapping place can take
    size_t left = (size_t)(end - place) - 1;
    return text_find(place + 1, left < span ? left : span, wanted->old, wanted->old_size) != NULL;
}

// Writes the part of the window that is settled: all but its end, where a place may continue in what is read next.
static int settle(struct editing *editing, int fd, bool last, const char *path, struct error *error)
{
    const struct replacement *wanted = editing->wanted;
    size_t unsettled = last ? 0 : 2 * wanted->old_size - 2;
    const char *from = editing->window, *end = from + editing->size, *place;
    while ((place = text_find(from, (size_t)(end - from), wanted->old, wanted->old_size))) {
        if ((size_t)(end - place) - 1 < unsettled)
            break;
        if (++editing->found > wanted->count || overlaps(wanted, place, end))
            return 1;
        if (workspace_write_bytes(fd, from, (size_t)(place - from), &editing->sha256, path, error) < 0 ||
            workspace_write_bytes(fd, wanted->new, wanted->new_size, &editing->sha256, path, error) < 0)
            return -1;
        from = place + wanted->old_size;
    }
    size_t left = (size_t)(end - from), kept = left < unsettled ? left : unsettled;
    if (workspace_write_bytes(fd, from, left - kept, &editing->sha256, path, error) < 0)
        return -1;
    memmove(editing->window, end - kept, kept);
    editing->size = kept;
    return 0;
}

static int fill_edited(int fd, void *data, const char *path, struct error *error)
{
    struct editing *editing = data;
    for (;;) {
        ssize_t count = read(editing->from, editing->window + editing->size, CHUNK);
        if (count < 0 && errno != EINTR)
            return error_system(error, errno, "cannot read %s", path);
        editing->size += count > 0 ? (size_t)count : 0;
        int outcome = settle(editing, fd, count == 0, path, error);
        if (outcome != 0)
            return outcome;
        if (count == 0)
            break;
    }
    text_sha256_final(&editing->sha256, editing->digest);
    return editing->found == editing->wanted->count ? 0 : 1;
}

int transaction_replace(struct transaction *transaction, const char *path, const struct replacement *replacement,
                        char sha256[TEXT_SHA256_HEX], struct error *error)
{
    struct stat status;
    cleanup_fd int from = workspace_open_file(transaction->workspace, path, &status, error);
    if (from < 0)
        return -1;
    cleanup_free char *window = malloc(CHUNK + 2 * replacement->old_size);
    if (!window)
        return error_system(error, ENOMEM, "cannot change %s", path);
    struct editing editing = {.wanted = replacement, .digest = sha256, .from = from, .window = window};
    text_sha256_init(&editing.sha256);
    return transaction_stage(transaction, path, MODE_AS_BEFORE, fill_edited, &editing, error);
}
