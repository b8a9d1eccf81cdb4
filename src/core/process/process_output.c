// SPDX-License-Identifier: Apache-2.0
// The output of a command, see process_output.h.
#include "core/process/process_output.h"

#include "core/base/cleanup.h"
#include "core/base/clock.h"
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
    LAST_LEAST = PROCESS_OUTPUT_SHOWN / 2, // bytes that stay of the last ones
};

// A larger pipe means fewer context switches. The kernel may refuse; that does no harm.
static void widen(struct process_output_stream *stream, ssize_t got)
{
    if (stream->widened || got < PIPE_USUAL)
        return;
    stream->widened = true;
    fcntl(stream->fd, F_SETPIPE_SZ, PIPE_WIDE);
}

static size_t size_of(const struct process_text *text)
{
    return text->spool.fd >= 0 ? (size_t)text->spool.size : text->text.size;
}

// Appends to a text, and may empty the bytes. When the disk of its spool is full, it goes on in memory.
static int add(struct process_text *text, struct buffer *clean)
{
    struct spool *spool = &text->spool;
    if (spool->fd >= 0 && spool_append(spool, clean->data, clean->size) == 0)
        return 0;
    if (spool->fd >= 0 && spool_read(spool, 0, (size_t)spool->size, &text->text) < 0)
        return -1;
    cleanup_close(&spool->fd);
    if (text->text.size > 0)
        return buffer_append(&text->text, clean->data, clean->size);
    text->text = *clean;
    *clean = (struct buffer){0};
    return 0;
}

// Moves to a stream's text what no secret or character that is cut can begin in. Base64 may be wrapped, so the ends of
// lines at the end are left.
static int settle(struct process_output_stream *stream)
{
    cleanup_buffer struct buffer clean = {0};
    struct buffer *raw = &stream->raw;
    size_t size = raw->size;
    for (int i = 0; i < SECRET_BLANKS_MAX && size > 0 && raw->data[size - 1] == '\n'; i++)
        size--;
    bool unused = false;
    if (secret_redact_settled(raw->data, &size, &unused, &clean) < 0 || text_repair_all(&clean) < 0 ||
        add(&stream->text, &clean) < 0)
        return -1;
    raw->size -= size;
    memmove(raw->data, raw->data + size, raw->size);
    return 0;
}

static int keep_text(struct process_output *output, struct process_output_stream *stream, const char *bytes,
                     size_t size)
{
    if (buffer_append(&stream->raw, bytes, size) < 0)
        return -1;
    if (!output->spool || stream->raw.size < PROCESS_OUTPUT_SHOWN)
        return 0;
    if (size_of(&stream->text) == 0 && stream->text.spool.fd < 0)
        spool_open(&stream->text.spool, output->spool); // without one, it stays in memory
    return settle(stream);
}

static int write_down(struct process_transcript *transcript, const char *bytes, size_t size)
{
    struct buffer *last = &transcript->last;
    transcript->total += size;
    if (last->size + size > 2 * LAST_LEAST) { // seldom, so that few bytes are moved
        size_t stays = size_least(last->size, LAST_LEAST);
        if (transcript->head.size == 0 && buffer_append(&transcript->head, last->data, stays) < 0)
            return -1;
        memmove(last->data, last->data + last->size - stays, stays);
        last->size = stays;
    }
    return buffer_append(last, bytes, size);
}

// Appends the bytes from that offset on that are still there. Returns the offset of the first.
static uint64_t read_from(const struct process_transcript *transcript, uint64_t offset, struct buffer *into)
{
    const struct buffer *last = &transcript->last;
    uint64_t there = transcript->total - last->size;
    uint64_t from = offset < there ? there : offset;
    size_t size = (size_t)(transcript->total - from);
    return buffer_append(into, last->data + (from - there), size) < 0 ? transcript->total : from;
}

static void starve(struct process_output *output)
{
    output->starved = true;
    output->limit = output->both.last.size = 0;
    output->streams[0].half_size = output->streams[1].half_size = 0;
}

// Takes the half characters, which both streams may have, from the end of what both printed.
static void take_halves(struct process_output *output)
{
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        output->both.last.size -= output->streams[i].half_size;
        output->both.total -= output->streams[i].half_size;
    }
    if (output->seen > output->both.total)
        output->seen = output->both.total;
}

static int put_halves(struct process_output *output)
{
    for (int i = 0; i < PROCESS_STREAMS; i++)
        if (write_down(&output->both, output->streams[i].half, output->streams[i].half_size) < 0)
            return -1;
    return 0;
}

// Finds the half character at the end of what a stream has printed.
static void find_half(struct process_output_stream *stream, const char *bytes, size_t size)
{
    char end[2 * sizeof stream->half];
    size_t before = size < sizeof stream->half ? stream->half_size : 0;
    size_t after = size_least(size, sizeof stream->half - 1);
    memcpy(end, stream->half, before);
    memcpy(end + before, bytes + size - after, after);
    size_t whole = text_whole(end, before + after);
    stream->half_size = before + after - whole;
    memcpy(stream->half, end + whole, stream->half_size);
}

// Writes what a stream printed to that of both. The other one must not come between the bytes of a character: its half
// one stays at the end. It is not held back: behind "corr", which may begin a secret, it tells that none goes on.
static int write_characters(struct process_output *output, struct process_output_stream *stream, const char *bytes,
                            size_t size)
{
    const struct process_output_stream *streams = output->streams;
    bool interrupts = streams[stream == &streams[0] ? 1 : 0].half_size > 0;
    if (interrupts) {
        take_halves(output);
        if (write_down(&output->both, stream->half, stream->half_size) < 0)
            return -1;
    }
    find_half(stream, bytes, size);
    if (write_down(&output->both, bytes, size) < 0)
        return -1;
    if (!interrupts)
        return 0;
    // The own half, which may have begun before these bytes, is written with the other's.
    output->both.last.size -= stream->half_size;
    output->both.total -= stream->half_size;
    return put_halves(output);
}

// At the end of a stream no rest comes any more.
static void write_half(struct process_output *output, struct process_output_stream *stream)
{
    if (output->starved || !stream->half_size)
        return;
    take_halves(output);
    int status = write_down(&output->both, stream->half, stream->half_size);
    stream->half_size = 0;
    if (status < 0 || put_halves(output) < 0)
        starve(output);
}

static void keep(struct process_output *output, struct process_output_stream *stream, const char *bytes, size_t size)
{
    uint64_t before = output->both.total;
    size_t fits = before < output->limit ? size_least(size, output->limit - (size_t)before) : 0;
    stream->printed += size;
    stream->text.truncated |= fits < size;
    if (write_characters(output, stream, bytes, size) < 0 || keep_text(output, stream, bytes, fits) < 0)
        starve(output);
}

void process_output_read(struct process_output *output, int which)
{
    static char bytes[PIPE_WIDE];
    struct process_output_stream *stream = &output->streams[which];
    ssize_t got = read(stream->fd, bytes, sizeof bytes);
    if (got > 0 && which == PROCESS_STDOUT && output->hear) {
        output->hear(output->data, bytes, (size_t)got);
    } else if (got > 0) {
        keep(output, stream, bytes, (size_t)got);
        widen(stream, got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        write_half(output, stream);
        cleanup_close(&stream->fd);
    }
}

void process_output_drain(struct process_output *output, int milliseconds)
{
    struct process_output_stream *streams = output->streams;
    for (int i = 0; i < PROCESS_STREAMS; i++)
        process_output_read(output, i);
    int64_t until = clock_now() + milliseconds, left;
    while ((streams[0].fd >= 0 || streams[1].fd >= 0) && (left = until - clock_now()) > 0) {
        struct pollfd ends[PROCESS_STREAMS] = {{streams[0].fd, POLLIN, 0}, {streams[1].fd, POLLIN, 0}};
        if (poll(ends, PROCESS_STREAMS, (int)left) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < PROCESS_STREAMS; i++)
            if (ends[i].revents)
                process_output_read(output, i);
    }
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        write_half(output, &streams[i]);
        cleanup_close(&streams[i].fd);
    }
}

uint64_t process_output_news(struct process_output *output, bool whole, struct buffer *news)
{
    uint64_t seen = output->seen, total = output->both.total;
    bool all = whole || total - seen <= PROCESS_OUTPUT_NEWS;
    output->seen = total;
    return read_from(&output->both, all ? seen : total - PROCESS_OUTPUT_NEWS, news) - seen;
}

// So many bytes of the beginning and of the end, but no parts of characters.
static int show_ends(const struct process_transcript *transcript, size_t first, size_t last, struct buffer *head,
                     struct buffer *tail)
{
    const struct buffer *begin = transcript->head.size ? &transcript->head : &transcript->last;
    const char *end = transcript->last.data + transcript->last.size - last;
    size_t part = text_half(end, last);
    if (buffer_append(head, begin->data, text_whole(begin->data, first)) < 0)
        return -1;
    return buffer_append(tail, end + part, last - part);
}

int process_output_show(const struct process_output *output, struct buffer *head, struct buffer *tail,
                        uint64_t *missing)
{
    const struct process_transcript *both = &output->both;
    const struct process_output_stream *out = &output->streams[PROCESS_STDOUT], *err = &output->streams[PROCESS_STDERR];
    size_t most = size_least(output->limit, PROCESS_OUTPUT_SHOWN);
    *missing = 0;
    if (output->starved)
        return -1;
    if (both->total <= output->limit && (!out->printed || !err->printed))
        return 0;
    if (both->total <= most)
        return buffer_append(head, both->last.data, both->last.size) < 0 ? -1 : secret_redact(head, 0);
    bool has_room = most > PROCESS_OUTPUT_NOTE + 1;
    size_t half = has_room ? (most - PROCESS_OUTPUT_NOTE) / 2 : 0;
    if (show_ends(both, has_room ? half : most, half, head, tail) < 0)
        return -1;
    *missing = both->total - head->size - tail->size;
    return secret_redact(head, SECRET_CUT_END) < 0 ? -1 : secret_redact(tail, SECRET_CUT_START);
}

static int cut(struct process_text *text, size_t limit)
{
    char end[4];
    if (size_of(text) <= limit)
        return 0;
    text->truncated = true;
    text->text.size = text_cut(text->text.data, text->text.size, limit);
    if (text->spool.fd >= 0 && pread(text->spool.fd, end, sizeof end, (off_t)(limit - 3)) != sizeof end)
        return -1;
    text->spool.size = text->spool.fd < 0 ? 0 : limit - 3 + text_cut(end, sizeof end, 3);
    return 0;
}

// U+FFFD takes more room than the byte that it replaces. A stream that takes less than half of the limit stays whole.
int process_output_take(struct process_output *output, struct process_text texts[PROCESS_STREAMS])
{
    int failed = output->starved;
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        struct process_output_stream *stream = &output->streams[i];
        failed = failed || secret_redact(&stream->raw, stream->text.truncated ? SECRET_CUT_END : 0) < 0 ||
                 add(&stream->text, &stream->raw) < 0;
        texts[i] = stream->text;
        stream->text = (struct process_text){.spool.fd = -1};
    }
    struct process_text *out = &texts[PROCESS_STDOUT], *err = &texts[PROCESS_STDERR];
    size_t limit = output->limit, half = limit / 2;
    if (!failed && size_of(out) + size_of(err) > limit)
        failed = cut(err, size_of(out) <= half ? limit - size_of(out) : half) < 0 || cut(out, limit - size_of(err)) < 0;
    return failed ? -1 : 0;
}

void process_output_free(struct process_output *output)
{
    for (struct process_output_stream *stream = output->streams; stream < output->streams + PROCESS_STREAMS; stream++) {
        cleanup_close(&stream->fd);
        cleanup_close(&stream->text.spool.fd);
        buffer_free(&stream->text.text);
        buffer_free(&stream->raw);
    }
    buffer_free(&output->both.head);
    buffer_free(&output->both.last);
}
