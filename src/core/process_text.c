// SPDX-License-Identifier: Apache-2.0
// Output as text, see process_text.h.
#include "core/process_text.h"

#include "core/text.h"

#include <stdio.h>

// Size without the bytes at the end that begin a character and do not finish it: the cut, not the command, made them.
static size_t without_torn_end(const char *bytes, size_t size)
{
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        unsigned char byte = (unsigned char)bytes[size - back];
        if (byte < 0x80)
            break;
        if (byte >= 0xC0) {
            size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
            return length > back ? size - back : size;
        }
    }
    return size;
}

int process_text(const struct process_stream *stream, size_t limit, struct process_text *text)
{
    const char *bytes = stream->data.data;
    size_t size = stream->data.size;
    text->truncated = stream->seen > size;
    if (text->truncated)
        size = without_torn_end(bytes, size);
    if (!text_is_utf8(bytes, size)) {
        if (text_repair(bytes, size, &text->copy) < 0)
            return -1;
        bytes = text->copy.data;
        size = text->copy.size;
    }
    text->bytes = bytes;
    text->size = text_cut(bytes, size, limit);
    text->truncated = text->truncated || text->size < size;
    return 0;
}

static int append_repaired(struct buffer *out, const char *bytes, size_t size, size_t limit, bool keep_end)
{
    struct buffer repaired = {0};
    int outcome = text_repair(bytes, size, &repaired);
    size_t kept = text_cut(repaired.data, repaired.size, limit), from = 0;
    if (keep_end && repaired.size > limit) {
        from = repaired.size - limit;
        while (from < repaired.size && ((unsigned char)repaired.data[from] & 0xC0) == 0x80)
            from++;
        kept = repaired.size - from;
    }
    if (outcome == 0)
        outcome = buffer_append(out, repaired.data + from, kept);
    buffer_free(&repaired);
    return outcome;
}

int process_blend(const struct process_outcome *outcome, struct buffer *out)
{
    const struct buffer *head = &outcome->head, *tail = &outcome->tail;
    uint64_t left_out = outcome->out.seen + outcome->err.seen - head->size - tail->size;
    char line[64];
    if (left_out == 0) {
        struct buffer whole = {0};
        int failed = buffer_append(&whole, head->data, head->size);
        if (!failed)
            failed = buffer_append(&whole, tail->data, tail->size);
        if (!failed)
            failed = append_repaired(out, whole.data, whole.size, 2 * PROCESS_BLEND_HALF, false);
        buffer_free(&whole);
        return failed;
    }
    size_t first = without_torn_end(head->data, head->size), from = 0;
    while (from < tail->size && from < 3 && ((unsigned char)tail->data[from] & 0xC0) == 0x80)
        from++;
    int size = snprintf(line, sizeof line, "\n[... %llu bytes left out ...]\n",
                        (unsigned long long)left_out + (head->size - first) + from);
    if (append_repaired(out, head->data, first, PROCESS_BLEND_HALF, false) < 0 ||
        buffer_append(out, line, (size_t)size) < 0)
        return -1;
    return append_repaired(out, tail->data + from, tail->size - from, PROCESS_BLEND_HALF, true);
}
