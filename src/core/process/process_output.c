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
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    READ_MOST = 256 << 10,
    PIPE_USUAL = 64 << 10,
    PIPE_WIDE = 1 << 20,
    LONGEST_CHARACTER = 4,
    LONGEST_WORD = 256,
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// The place of byte number n.
static size_t transcript_place(const struct transcript *transcript, uint64_t n)
{
    size_t half = transcript->half;
    return n < 2 * half ? (size_t)n : half + (size_t)((n - half) % half);
}

static int transcript_add(struct transcript *transcript, const char *bytes, size_t size)
{
    struct buffer *kept = &transcript->bytes;
    while (size > 0) {
        if (transcript->total >= transcript->half && size > transcript->half) { // more than the ring holds
            size_t skipped = size - transcript->half;
            transcript->total += skipped;
            bytes += skipped;
            size -= skipped;
        }
        size_t at = transcript_place(transcript, transcript->total), part = least(size, 2 * transcript->half - at);
        if (at + part > kept->size) {
            if (buffer_reserve(kept, at + part - kept->size) < 0)
                return -1;
            kept->size = at + part;
        }
        memcpy(kept->data + at, bytes, part);
        transcript->total += part;
        bytes += part;
        size -= part;
    }
    return 0;
}

static size_t kept_bytes(const struct process_output *output)
{
    return output->streams[PROCESS_STDOUT].kept.size + output->streams[PROCESS_STDERR].kept.size;
}

// A larger pipe means fewer context switches. The kernel may refuse; that does no harm.
static void widen(struct process_stream *stream, ssize_t got)
{
    if (stream->widened || got < PIPE_USUAL)
        return;
    stream->widened = true;
    fcntl(stream->fd, F_SETPIPE_SZ, PIPE_WIDE);
}

static void starve(struct process_output *output)
{
    output->starved = true;
    output->limit = kept_bytes(output);
}

// Adds output to the transcript. When it begins, what was kept until then comes first.
static void transcribe(struct process_output *output, const char *bytes, size_t size)
{
    struct transcript *transcript = &output->transcript;
    for (int i = 0; i < PROCESS_STREAMS && transcript->total == 0; i++) {
        const struct buffer *kept = &output->streams[i].kept;
        if (transcript_add(transcript, kept->data, kept->size) < 0)
            starve(output);
    }
    if (transcript_add(transcript, bytes, size) < 0)
        starve(output);
}

// If memory is out, the bytes count as missing.
static void note_news(struct process_output *output, const char *bytes, size_t size)
{
    struct process_news *news = &output->news;
    struct buffer *kept = &news->bytes;
    size_t room = news->whole ? SIZE_MAX : NEWS_MOST;
    if (!news->wanted)
        return;
    if (size > room) {
        news->missing += size - room;
        bytes += size - room;
        size = room;
    }
    if (!news->whole && kept->size + size > 2 * room) { // seldom, so that few bytes are moved
        size_t old = least(kept->size, kept->size + size - room);
        news->missing += old;
        kept->size -= old;
        memmove(kept->data, kept->data + old, kept->size);
    }
    if (buffer_append(kept, bytes, size) < 0)
        news->missing += size;
}

void output_seen(struct process_output *output)
{
    output->news.bytes.size = 0;
    output->news.missing = 0;
}

// Counts what was read, and keeps what fits.
static void keep(struct process_output *output, struct process_stream *stream, const char *bytes, size_t size)
{
    const struct process_stream *other = &output->streams[stream == output->streams];
    size_t fits = least(size, output->limit - kept_bytes(output));
    stream->printed += size;
    stream->truncated |= fits < size;
    note_news(output, bytes, size);
    if (stream->truncated || other->printed > 0)
        transcribe(output, bytes, size);
    if (buffer_append(&stream->kept, bytes, fits) < 0) {
        starve(output);
        stream->truncated = true;
    }
}

void output_read(struct process_output *output, int which)
{
    static char bytes[READ_MOST];
    struct process_stream *stream = &output->streams[which];
    ssize_t got = read(stream->fd, bytes, sizeof bytes);
    if (got > 0) {
        keep(output, stream, bytes, (size_t)got);
        widen(stream, got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        cleanup_close(&stream->fd);
    }
}

bool output_past_limit(const struct process_output *output)
{
    return output->streams[PROCESS_STDOUT].truncated || output->streams[PROCESS_STDERR].truncated;
}

void output_read_waiting(struct process_output *output, int which)
{
    const struct process_stream *stream = &output->streams[which];
    int waiting = 0;
    if (stream->fd >= 0)
        output_read(output, which); // most often all, up to its end
    if (stream->fd < 0 || ioctl(stream->fd, FIONREAD, &waiting) < 0)
        return;
    uint64_t until = stream->printed + (uint64_t)waiting, before;
    do {
        before = stream->printed;
        output_read(output, which);
    } while (stream->fd >= 0 && stream->printed < until && stream->printed > before);
}

void output_drain(struct process_output *output, int milliseconds)
{
    struct process_stream *streams = output->streams;
    for (int i = 0; i < PROCESS_STREAMS; i++)
        output_read_waiting(output, i);
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

// The size without an incomplete character at the end.
static size_t without_torn_end(const char *bytes, size_t size)
{
    bool good = true;
    for (size_t back = 1; back < LONGEST_CHARACTER && back <= size; back++)
        if ((unsigned char)bytes[size - back] >= 0xC0)
            return text_character(bytes + size - back, back, &good) == back && !good ? size - back : size;
    return size;
}

static int repair(struct process_stream *stream)
{
    struct buffer good = {0};
    struct buffer *kept = &stream->kept;
    if (secret_redact(kept, stream->truncated ? SECRET_CUT_END : 0) < 0)
        return -1;
    if (stream->truncated)
        kept->size = without_torn_end(kept->data, kept->size);
    if (text_is_utf8(kept->data, kept->size))
        return 0;
    int outcome = text_repair(kept->data, kept->size, &good);
    buffer_free(kept);
    *kept = good;
    return outcome;
}

static void cut(struct process_stream *stream, size_t limit)
{
    if (stream->kept.size <= limit)
        return;
    stream->kept.size = text_cut(stream->kept.data, stream->kept.size, limit);
    stream->truncated = true;
}

// U+FFFD takes more room than the byte that it replaces. A stream that takes less than half of the limit stays whole.
int output_repair(struct process_output *output)
{
    struct process_stream *out = &output->streams[PROCESS_STDOUT], *err = &output->streams[PROCESS_STDERR];
    if (output->starved || repair(out) < 0 || repair(err) < 0)
        return -1;
    if (kept_bytes(output) <= output->limit)
        return 0;
    size_t half = output->limit / 2, room = half;
    if (err->kept.size <= half)
        room = err->kept.size;
    else if (out->kept.size <= half)
        room = output->limit - out->kept.size;
    cut(err, room);
    cut(out, output->limit - err->kept.size);
    return 0;
}

void transcript_limit(struct transcript *transcript, size_t limit)
{
    size_t most = least(limit, TRANSCRIPT_MAX);
    bool has_tail = most > TRANSCRIPT_NOTE;
    transcript->half = has_tail ? (most + 1) / 2 : most + 1;
    transcript->spare = has_tail ? (TRANSCRIPT_NOTE + 1) / 2 : 0;
}

// The place after a blank that soon follows `from`, or else `from`.
static size_t tail_start(const char *bytes, size_t size, size_t from)
{
    static const char blanks[] = " \t\r\n";
    size_t last = from + least(LONGEST_WORD, (size - from) / 2);
    for (size_t i = from; i < last; i++)
        if (bytes[i] && strchr(blanks, bytes[i]))
            return i + 1;
    return from;
}

int transcript_text(const struct transcript *transcript, struct buffer *head, struct buffer *tail, uint64_t *missing)
{
    const struct buffer *kept = &transcript->bytes;
    cleanup_buffer struct buffer first = {0}, last = {0};
    *missing = transcript->total - kept->size;
    if (kept->size == 0)
        return 0;
    size_t half = transcript->half, oldest = transcript_place(transcript, transcript->total);
    size_t shown = *missing ? without_torn_end(kept->data, half - transcript->spare) : kept->size;
    if (buffer_append(&first, kept->data, shown) < 0 || secret_redact(&first, *missing ? SECRET_CUT_END : 0) < 0 ||
        text_repair(first.data, first.size, head) < 0)
        return -1;
    if (*missing == 0)
        return 0;
    if (buffer_append(&last, kept->data + oldest, kept->size - oldest) < 0 ||
        buffer_append(&last, kept->data + half, oldest - half) < 0)
        return -1;
    size_t start = tail_start(last.data, last.size, transcript->spare);
    *missing = transcript->total - shown - (last.size - start);
    memmove(last.data, last.data + start, last.size - start);
    last.size -= start;
    return secret_redact(&last, SECRET_CUT_START) < 0 ? -1 : text_repair(last.data, last.size, tail);
}

void output_free(struct process_output *output)
{
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        cleanup_close(&output->streams[i].fd);
        buffer_free(&output->streams[i].kept);
    }
    buffer_free(&output->transcript.bytes);
    buffer_free(&output->news.bytes);
}
