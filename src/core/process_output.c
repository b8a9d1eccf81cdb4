// SPDX-License-Identifier: Apache-2.0
// What a command prints, see process_output.h.
#include "core/process_output.h"

#include "core/cleanup.h"
#include "core/interrupt.h"
#include "core/secret.h"
#include "core/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    READ_LEAST = 16 << 10,
    READ_MOST = 1 << 20,
    PIPE_USUAL = 64 << 10,
    PIPE_WIDE = 1 << 20,
    LONGEST_CHARACTER = 4,
    LINE_SIZE = 64, // "\n[... 18446744073709551615 bytes left out ...]\n"
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void excerpt_add(struct excerpt *excerpt, const char *bytes, size_t size)
{
    size_t head = least(size, EXCERPT_HALF - excerpt->head_size);
    memcpy(excerpt->head + excerpt->head_size, bytes, head);
    excerpt->head_size += head;
    excerpt->total += size;
    bytes += head;
    size -= head;
    if (size == 0)
        return;
    size_t last = least(size, EXCERPT_HALF);
    size_t place = (size_t)((excerpt->total - excerpt->head_size - last) % EXCERPT_HALF);
    size_t before_end = least(last, EXCERPT_HALF - place);
    bytes += size - last;
    memcpy(excerpt->tail + place, bytes, before_end);
    memcpy(excerpt->tail, bytes + before_end, last - before_end);
}

static size_t kept_bytes(const struct process_output *output)
{
    return output->streams[PROCESS_STDOUT].kept.size + output->streams[PROCESS_STDERR].kept.size;
}

// A larger pipe means fewer changes between the command and us. The kernel may refuse, which does no harm.
static void widen(struct process_stream *stream, ssize_t got)
{
    if (stream->widened || got < PIPE_USUAL)
        return;
    stream->widened = true;
    fcntl(stream->fd, F_SETPIPE_SZ, PIPE_WIDE);
}

// Past the limit what comes is looked at for its last bytes only.
static ssize_t discard(struct process_output *output, struct process_stream *stream)
{
    static char scratch[PIPE_WIDE / 4];
    ssize_t got = read(stream->fd, scratch, sizeof scratch);
    if (got <= 0)
        return got;
    excerpt_add(&output->excerpt, scratch, (size_t)got);
    stream->printed += (uint64_t)got;
    stream->truncated = true;
    return got;
}

// Counts what was read, and says how much of it is to be kept.
static size_t account(struct process_output *output, struct process_stream *stream, const char *bytes, size_t got)
{
    excerpt_add(&output->excerpt, bytes, got);
    stream->printed += got;
    size_t fits = least(got, output->limit - kept_bytes(output));
    stream->truncated = fits < got;
    return fits;
}

// The first bytes come by way of a scratch: most commands print few or none, and are not worth a buffer of READ_LEAST.
static ssize_t keep_first(struct process_output *output, struct process_stream *stream)
{
    static char scratch[READ_LEAST];
    ssize_t got = read(stream->fd, scratch, sizeof scratch);
    if (got <= 0)
        return got;
    if (buffer_append(&stream->kept, scratch, account(output, stream, scratch, (size_t)got)) < 0) {
        output->starved = true;
        output->limit = kept_bytes(output);
        stream->truncated = true;
    }
    return got;
}

static ssize_t keep(struct process_output *output, struct process_stream *stream)
{
    struct buffer *kept = &stream->kept;
    if (kept->size == 0)
        return keep_first(output, stream);
    size_t room = kept->size < READ_LEAST ? READ_LEAST : least(kept->size, READ_MOST);
    if (buffer_reserve(kept, room) < 0) {
        output->starved = true;
        output->limit = kept_bytes(output);
        return discard(output, stream);
    }
    char *to = kept->data + kept->size;
    ssize_t got = read(stream->fd, to, kept->capacity - kept->size);
    if (got > 0)
        kept->size += account(output, stream, to, (size_t)got);
    return got;
}

void output_read(struct process_output *output, int which)
{
    struct process_stream *stream = &output->streams[which];
    ssize_t got = output_past_limit(output) ? discard(output, stream) : keep(output, stream);
    if (got > 0) {
        widen(stream, got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(stream->fd);
        stream->fd = -1;
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
        output_read(output, which); // most often all there is, and its end
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
    int64_t until = interrupt_now() + milliseconds, left;
    while ((streams[0].fd >= 0 || streams[1].fd >= 0) && (left = until - interrupt_now()) > 0) {
        struct pollfd ends[PROCESS_STREAMS] = {{streams[0].fd, POLLIN, 0}, {streams[1].fd, POLLIN, 0}};
        if (poll(ends, PROCESS_STREAMS, (int)left) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < PROCESS_STREAMS; i++)
            if (ends[i].revents)
                output_read(output, i);
    }
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        if (streams[i].fd >= 0)
            close(streams[i].fd);
        streams[i].fd = -1;
    }
}

// The size without a character that has begun at the end and lacks its rest.
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

// U+FFFD takes more room than what it stands for. The stream that takes less than half of the limit stays whole.
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

// How much the character at the start of bytes takes once it is repaired.
static size_t repaired_size(const char *bytes, size_t size, size_t *length)
{
    bool good = true;
    *length = text_character(bytes, size, &good);
    return good ? *length : strlen("\xEF\xBF\xBD");
}

// The part of bytes from its start that is whole characters and takes at most limit bytes once repaired; *rest: what
// the remainder would take.
static size_t fitting(const char *bytes, size_t size, size_t limit, size_t *rest)
{
    size_t taken = 0, fits = 0, length;
    *rest = 0;
    for (size_t i = 0; i < size; i += length) {
        size_t more = repaired_size(bytes + i, size - i, &length);
        taken += more;
        if (taken <= limit)
            fits = i + length;
        else
            *rest += more;
    }
    return fits;
}

// The place from which on bytes take at most limit once repaired.
static size_t fitting_end(const char *bytes, size_t size, size_t limit)
{
    size_t whole, length, i = 0;
    fitting(bytes, size, 0, &whole);
    for (; whole > limit; i += length)
        whole -= repaired_size(bytes + i, size - i, &length);
    return i;
}

static int append_shortened(const char *bytes, size_t size, uint64_t missing, size_t gap, struct buffer *out)
{
    enum { HALF = EXCERPT_HALF - LINE_SIZE / 2 };
    char line[LINE_SIZE];
    size_t unused, from = gap;
    size_t head = fitting(bytes, without_torn_end(bytes, gap), HALF, &unused);
    while (from < size && from < gap + LONGEST_CHARACTER - 1 && ((unsigned char)bytes[from] & 0xC0) == 0x80)
        from++;
    from += fitting_end(bytes + from, size - from, HALF);
    int length =
        snprintf(line, sizeof line, "\n[... %llu bytes left out ...]\n", (unsigned long long)(missing + from - head));
    return text_repair(bytes, head, out) < 0 || buffer_append(out, line, (size_t)length) < 0
               ? -1
               : text_repair(bytes + from, size - from, out);
}

int excerpt_text(const struct excerpt *excerpt, struct buffer *out)
{
    cleanup_buffer struct buffer text = {0}, end = {0};
    size_t rest, gap = excerpt->head_size;
    uint64_t after = excerpt->total - gap;
    size_t tail = (size_t)(after < EXCERPT_HALF ? after : EXCERPT_HALF);
    size_t place = (size_t)((after - tail) % EXCERPT_HALF);
    size_t before_end = least(tail, EXCERPT_HALF - place);
    bool whole = after == tail;
    struct buffer *second = whole ? &text : &end;
    if (buffer_append(&text, excerpt->head, gap) < 0 || buffer_append(second, excerpt->tail + place, before_end) < 0 ||
        buffer_append(second, excerpt->tail, tail - before_end) < 0 ||
        secret_redact(&text, whole ? 0 : SECRET_CUT_END) < 0 || secret_redact(&end, SECRET_CUT_START) < 0)
        return -1;
    if (whole && fitting(text.data, text.size, EXCERPT_SIZE, &rest) == text.size)
        return text_repair(text.data, text.size, out);
    gap = whole ? text.size / 2 : text.size;
    if (buffer_append(&text, end.data, end.size) < 0)
        return -1;
    return append_shortened(text.data, text.size, after - tail, gap, out);
}

void output_free(struct process_output *output)
{
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        if (output->streams[i].fd >= 0)
            close(output->streams[i].fd);
        buffer_free(&output->streams[i].kept);
        output->streams[i].fd = -1;
    }
}
