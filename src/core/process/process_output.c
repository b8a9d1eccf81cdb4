// SPDX-License-Identifier: Apache-2.0
// The output of a command, see process_output.h.
#include "core/process/process_output.h"

#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/text/secret.h"
#include "core/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
    PIPE_USUAL = 64 << 10,
    PIPE_WIDE = 256 << 10,
    LAST_LEAST = OUTPUT_SHOWN / 2, // bytes that stay of those past the limit
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// A larger pipe means fewer context switches. The kernel may refuse; that does no harm.
static void widen(struct output_stream *stream, ssize_t got)
{
    if (stream->widened || got < PIPE_USUAL)
        return;
    stream->widened = true;
    fcntl(stream->fd, F_SETPIPE_SZ, PIPE_WIDE);
}

static int keep_first(struct output *output, int which, const char *bytes, size_t size)
{
    if (size > 0 && which != (int)(output->turn_count & 1)) {
        size_t *turns = array_grow(output->turns, output->turn_count, sizeof *turns);
        if (!turns)
            return -1;
        output->turns = turns;
        turns[output->turn_count++] = output->kept.size;
    }
    if (buffer_append(&output->kept, bytes, size) < 0)
        return -1;
    output->streams[which].kept += size;
    return 0;
}

static int keep_last(struct output *output, const char *bytes, size_t size)
{
    struct buffer *last = &output->last;
    if (last->size + size > 2 * LAST_LEAST) { // seldom, so that few bytes are moved
        size_t stays = least(last->size, LAST_LEAST);
        memmove(last->data, last->data + last->size - stays, stays);
        last->size = stays;
    }
    return buffer_append(last, bytes, size);
}

static void keep(struct output *output, int which, const char *bytes, size_t size)
{
    size_t fits = least(size, output->limit - output->kept.size);
    output->streams[which].printed += size;
    output->total += size;
    if (keep_first(output, which, bytes, fits) == 0 && keep_last(output, bytes + fits, size - fits) == 0)
        return;
    output->starved = true;
    output->limit = output->kept.size;
    output->last.size = 0;
}

void output_read(struct output *output, int which)
{
    static char bytes[PIPE_WIDE];
    struct output_stream *stream = &output->streams[which];
    ssize_t got = read(stream->fd, bytes, sizeof bytes);
    if (got > 0) {
        keep(output, which, bytes, (size_t)got);
        widen(stream, got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        cleanup_close(&stream->fd);
    }
}

void output_drain(struct output *output, int milliseconds)
{
    struct output_stream *streams = output->streams;
    for (int i = 0; i < PROCESS_STREAMS; i++)
        output_read(output, i);
    int64_t until = clock_now() + milliseconds, left;
    while ((streams[0].fd >= 0 || streams[1].fd >= 0) && (left = until - clock_now()) > 0) {
        struct pollfd ends[PROCESS_STREAMS] = {{streams[0].fd, POLLIN, 0}, {streams[1].fd, POLLIN, 0}};
        if (poll(ends, PROCESS_STREAMS, (int)left) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < PROCESS_STREAMS; i++)
            if (ends[i].revents)
                output_read(output, i);
    }
    for (int i = 0; i < PROCESS_STREAMS; i++)
        cleanup_close(&streams[i].fd);
}

// The number of the first byte that is still there, from this one on.
static uint64_t first_there(const struct output *output, uint64_t from)
{
    uint64_t last = output->total - output->last.size;
    return from < output->kept.size || from > last ? from : last;
}

// Appends the bytes printed between these numbers, as far as they are still there.
static int copy(const struct output *output, uint64_t from, uint64_t to, struct buffer *into)
{
    const struct buffer *kept = &output->kept, *last = &output->last;
    if (from < kept->size) {
        size_t end = to < kept->size ? (size_t)to : kept->size;
        if (buffer_append(into, kept->data + from, end - (size_t)from) < 0)
            return -1;
        from = end;
    }
    from = first_there(output, from);
    if (from >= to)
        return 0;
    return buffer_append(into, last->data + (from - (output->total - last->size)), (size_t)(to - from));
}

uint64_t output_news(struct output *output, bool whole, struct buffer *news)
{
    uint64_t seen = output->seen, size = output->total - seen;
    uint64_t from = first_there(output, whole || size <= OUTPUT_NEWS ? seen : output->total - OUTPUT_NEWS);
    output->seen = output->total;
    return copy(output, from, output->total, news) < 0 ? size : from - seen;
}

int output_show(const struct output *output, struct buffer *head, struct buffer *tail, uint64_t *missing)
{
    size_t most = least(output->limit, OUTPUT_SHOWN), half = (most > OUTPUT_NOTE ? most - OUTPUT_NOTE : 0) / 2;
    uint64_t total = output->total;
    *missing = 0;
    if (output->starved)
        return -1;
    if (total <= output->limit &&
        (!output->streams[PROCESS_STDOUT].printed || !output->streams[PROCESS_STDERR].printed))
        return 0;
    if (total <= most)
        return copy(output, 0, total, head) < 0 ? -1 : secret_redact(head, 0);
    if (copy(output, 0, half ? half : most, head) < 0 || copy(output, total - half, total, tail) < 0)
        return -1;
    *missing = total - text_whole(head->data, head->size) - tail->size;
    return secret_redact(head, SECRET_CUT_END) < 0 ? -1 : secret_redact(tail, SECRET_CUT_START);
}

// Parts the streams: stdout stays in its place.
static int part(struct output *output, struct process_text texts[PROCESS_STREAMS])
{
    struct buffer *kept = &output->kept;
    size_t from = 0, stays = 0;
    for (size_t i = 0; i <= output->turn_count; i++) {
        size_t to = i < output->turn_count ? output->turns[i] : kept->size;
        if (i & 1) {
            if (buffer_append(&texts[PROCESS_STDERR].text, kept->data + from, to - from) < 0)
                return -1;
        } else {
            if (from > stays)
                memmove(kept->data + stays, kept->data + from, to - from);
            stays += to - from;
        }
        from = to;
    }
    texts[PROCESS_STDOUT].text = *kept;
    texts[PROCESS_STDOUT].text.size = stays;
    *kept = (struct buffer){0};
    return 0;
}

static void cut(struct process_text *text, size_t limit)
{
    if (text->text.size <= limit)
        return;
    text->text.size = text_cut(text->text.data, text->text.size, limit);
    text->truncated = true;
}

// U+FFFD takes more room than the byte that it replaces. A stream that takes less than half of the limit stays whole.
int output_take(struct output *output, struct process_text texts[PROCESS_STREAMS])
{
    struct buffer *out = &texts[PROCESS_STDOUT].text, *err = &texts[PROCESS_STDERR].text;
    if (output->starved || part(output, texts) < 0)
        return -1;
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        texts[i].truncated = output->streams[i].printed > output->streams[i].kept;
        if (secret_redact(&texts[i].text, texts[i].truncated ? SECRET_CUT_END : 0) < 0)
            return -1;
    }
    size_t limit = output->limit, half = limit / 2;
    if (out->size + err->size > limit) {
        cut(&texts[PROCESS_STDERR], out->size <= half ? limit - out->size : half);
        cut(&texts[PROCESS_STDOUT], limit - err->size);
    }
    return 0;
}

void output_free(struct output *output)
{
    for (int i = 0; i < PROCESS_STREAMS; i++)
        cleanup_close(&output->streams[i].fd);
    buffer_free(&output->kept);
    buffer_free(&output->last);
    free(output->turns);
}
