// SPDX-License-Identifier: Apache-2.0
// Writes a long text, see long_text.h.
#include "core/files/long_text.h"

#include "core/text/secret.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

// Adds the next bytes to those that are held. Returns how many; 0: the end of the file.
static ssize_t fill(const struct long_text *text, size_t done, struct buffer *held)
{
    size_t left = text->size - done, wanted = left < FILE_BLOCK ? left : FILE_BLOCK;
    if (buffer_reserve(held, wanted) < 0)
        return errno = ENOMEM, -1;
    ssize_t got = (ssize_t)wanted;
    if (text->bytes)
        memcpy(held->data + held->size, text->bytes + done, wanted);
    else
        got = pread(text->fd, held->data + held->size, wanted, (off_t)(text->offset + done));
    held->size += got > 0 ? (size_t)got : 0;
    return got;
}

// Moves to clean what can be redacted already, or, of the last bytes, all.
static int redact(struct buffer *held, bool *is_cut, bool is_last, unsigned cuts, struct buffer *clean)
{
    size_t taken = held->size;
    if (is_last) {
        cuts = (*is_cut ? SECRET_CUT_START : 0) | (cuts & SECRET_CUT_END);
        int found = secret_redact_copy(held->data, held->size, cuts, clean);
        if (found < 0 || (!found && buffer_append(clean, held->data, held->size) < 0))
            return -1;
    } else if (secret_redact_settled(held->data, &taken, is_cut, clean) < 0) {
        return -1;
    }
    held->size -= taken;
    memmove(held->data, held->data + taken, held->size);
    return 0;
}

int64_t long_text_write(const struct long_text *text, struct file_log *log, bool *is_utf8, struct error *error)
{
    cleanup_buffer struct buffer held = {0}, clean = {0}, out = {0};
    bool is_cut = text->cuts & SECRET_CUT_START, is_last = false;
    int64_t total = 0;
    *is_utf8 = true;
    for (size_t done = 0; !is_last; clean.size = out.size = 0) {
        ssize_t got = fill(text, done, &held);
        if (got < 0)
            return error_system(error, errno, "cannot read a text");
        done += (size_t)got;
        is_last = got == 0 || done == text->size;
        if (redact(&held, &is_cut, is_last, text->cuts, &clean) < 0 ||
            (log && (text_repair_all(&clean) < 0 || text_json_append(clean.data, clean.size, &out) < 0)))
            return error_system(error, ENOMEM, "cannot read a text");
        total += (int64_t)clean.size;
        *is_utf8 = *is_utf8 && (log || text_is_utf8(clean.data, clean.size));
        const struct file_part part = {.bytes = out.data, .size = out.size};
        if (log && out.size > 0 && file_log_append(log, &(struct file_parts){&part, 1, 0}, true, error) < 0)
            return -1;
    }
    return total;
}
