// SPDX-License-Identifier: Apache-2.0
// Measures and writes a long text, see long_text.h.
#include "core/files/long_text.h"

#include "core/base/io.h"
#include "core/text/secret.h"

#include <errno.h>
#include <string.h>

enum { BASE64_BYTES = 3 }; // which become four characters

struct reader {
    const struct long_text *text;
    size_t done;        // bytes of the text that were read
    struct buffer held; // of them: what may be the beginning of a secret or a character
    bool is_cut;        // what is held, at its start
    bool is_last;       // there is no more
    struct buffer clean;
};

static void reader_close(struct reader *reader)
{
    buffer_free(&reader->held);
    buffer_free(&reader->clean);
}

#define cleanup_reader __attribute__((cleanup(reader_close)))

static struct reader reader_of(const struct long_text *text)
{
    return (struct reader){.text = text, .is_cut = text->cuts & SECRET_CUT_START};
}

// Adds the next bytes to those that are held. -1 and errno.
static int hold_more(struct reader *reader)
{
    const struct long_text *text = reader->text;
    struct buffer *held = &reader->held;
    size_t wanted = size_least(text->size - reader->done, FILE_BLOCK);
    ssize_t got = (ssize_t)wanted;
    if (buffer_reserve(held, wanted) < 0)
        return errno = ENOMEM, -1;
    if (!text->bytes)
        got = io_read(text->fd, held->data + held->size, wanted, (off_t)(text->offset + reader->done));
    else if (wanted > 0)
        memcpy(held->data + held->size, text->bytes + reader->done, wanted);
    if (got < 0)
        return -1;
    held->size += (size_t)got;
    reader->done += (size_t)got;
    reader->is_last = got == 0 || reader->done == text->size;
    return 0;
}

// Moves to clean what can be redacted already, or, of the last bytes, all.
static int redact(struct reader *reader)
{
    struct buffer *held = &reader->held, *clean = &reader->clean;
    size_t taken = held->size;
    if (reader->is_last) {
        unsigned cuts = (reader->is_cut ? SECRET_CUT_START : 0) | (reader->text->cuts & SECRET_CUT_END);
        int found = secret_redact_copy(held->data, held->size, cuts, clean);
        if (found < 0 || (!found && buffer_append(clean, held->data, held->size) < 0))
            return -1;
    } else if (secret_redact_settled(held->data, &taken, &reader->is_cut, clean) < 0) {
        return -1;
    }
    held->size -= taken;
    if (held->size > 0)
        memmove(held->data, held->data + taken, held->size);
    return 0;
}

// Replaces reader->clean by the next piece of the redacted text, which ends with a whole character unless it is the
// last. 1; 0 at the end; -1 and errno.
static int next_piece(struct reader *reader)
{
    if (reader->is_last)
        return 0;
    if (hold_more(reader) < 0)
        return -1;
    reader->clean.size = 0;
    if (redact(reader) < 0)
        return errno = ENOMEM, -1;
    return 1;
}

static int fail(struct error *error)
{
    return error_system(error, errno, "cannot read a text");
}

int long_text_measure(const struct long_text *text, struct long_text_measure *measure, struct error *error)
{
    cleanup_reader struct reader reader = reader_of(text);
    int more;
    *measure = (struct long_text_measure){.is_utf8 = true};
    while ((more = next_piece(&reader)) > 0) {
        const struct buffer *clean = &reader.clean;
        size_t whole = reader.is_last ? text_whole(clean->data, clean->size) : clean->size;
        measure->length += (int64_t)clean->size;
        measure->is_utf8 = measure->is_utf8 && text_is_utf8(clean->data, whole);
        measure->half = clean->size - whole;
    }
    return more < 0 ? fail(error) : 0;
}

// Appends to `out` the clean bytes as they are to be written. In base64, those that fill no group wait in it.
static int encode(const struct long_text *text, struct buffer *clean, bool is_last, struct buffer *out)
{
    if (!text->base64)
        return text_repair_all(clean) < 0 ? -1 : text_json_append(clean->data, clean->size, out);
    size_t rest = is_last ? 0 : clean->size % BASE64_BYTES, size = clean->size - rest;
    if (text_base64_encode(clean->data, size, out) < 0)
        return -1;
    if (rest > 0)
        memmove(clean->data, clean->data + size, rest);
    clean->size = rest;
    return 0;
}

// Cuts the piece where the text has all it may have, and takes it off what is left of that.
static bool cut_piece(const struct long_text *text, struct buffer *clean, int64_t *left)
{
    bool ends = clean->size > (size_t)*left;
    if (ends)
        clean->size = text->base64 ? (size_t)*left : text_cut(clean->data, clean->size, (size_t)*left);
    *left -= (int64_t)clean->size;
    return ends;
}

int long_text_write(const struct long_text *text, struct file_log *log, struct error *error)
{
    cleanup_reader struct reader reader = reader_of(text);
    cleanup_buffer struct buffer waiting = {0}, out = {0};
    int64_t left = text->most;
    bool ends = false;
    int more = 1;
    while (!ends && (more = next_piece(&reader)) > 0) {
        ends = cut_piece(text, &reader.clean, &left) || reader.is_last;
        out.size = 0;
        if (!text->base64)
            waiting.size = 0;
        if (buffer_append(&waiting, reader.clean.data, reader.clean.size) < 0 || encode(text, &waiting, ends, &out) < 0)
            return errno = ENOMEM, fail(error);
        const struct part part = {.bytes = out.data, .size = out.size};
        if (out.size > 0 && file_log_append(log, &(struct parts){&part, 1, 0}, true, error) < 0)
            return -1;
    }
    return more < 0 ? fail(error) : 0;
}
