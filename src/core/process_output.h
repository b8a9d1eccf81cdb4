// SPDX-License-Identifier: Apache-2.0
// What a command prints: read from its two pipes, kept up to a limit, counted past it.
#ifndef SBA_CORE_PROCESS_OUTPUT_H
#define SBA_CORE_PROCESS_OUTPUT_H

#include "core/buffer.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TRANSCRIPT_MAX = 1 << 20,
    TRANSCRIPT_NOTE = 80, // bytes left free for a line between head and tail
};

// Both streams as they came: whole up to two halves, past that head and tail. Empty while only one stream has printed,
// and no more than the limit: then its kept bytes are the same.
struct transcript {
    size_t half;
    size_t spare;   // bytes at the end of the first half and the start of the ring that are not shown where bytes are
                    // missing
    uint64_t total; // bytes
    struct buffer bytes; // the second half is a ring: byte number n lies at half + (n - half) % half
};

// Both streams as they came since somebody last looked.
struct process_news {
    bool wanted;
    bool whole; // keep all of it; else the last NEWS_MOST bytes, or up to twice as many
    struct buffer bytes;
    uint64_t missing; // bytes before those
};

enum { NEWS_MOST = 64 << 10 };

enum { PROCESS_STDOUT, PROCESS_STDERR, PROCESS_STREAMS };

struct process_stream {
    int fd; // reading end, non-blocking, owned; -1: at its end, or closed
    struct buffer kept;
    uint64_t printed; // bytes, what was left out included
    bool truncated;
    bool widened; // the pipe was made larger
};

struct process_output {
    struct process_stream streams[PROCESS_STREAMS];
    size_t limit; // bytes of both streams kept together
    bool starved; // memory was out before the limit was reached
    struct transcript transcript;
    struct process_news news;
};

// Reads what a stream has to give now, at most about a MiB; closes it at its end. Where memory is out it keeps no more.
void output_read(struct process_output *output, int stream);

// Reads what lies in a stream's pipe at this moment, however much is added meanwhile.
void output_read_waiting(struct process_output *output, int stream);

// Whether more was printed than the limit.
bool output_past_limit(const struct process_output *output);

// Reads what lies in the pipes now, and what comes within so many milliseconds unless both end before; then closes
// both.
void output_drain(struct process_output *output, int milliseconds);

// Makes what was kept UTF-8: ill-formed bytes become U+FFFD, a character that the limit cut in two is dropped, and both
// together stay within the limit. Out of memory, now or when it was read: -1.
int output_repair(struct process_output *output);

// The news were looked at: what comes from now on is news.
void output_seen(struct process_output *output);

// Sets how much the transcript keeps.
void transcript_limit(struct transcript *transcript, size_t limit);

// Appends the transcript as UTF-8, its tail to another buffer where bytes are missing in between: *missing. The tail
// starts after a blank, so that no secret is cut at its beginning. Out of memory: -1.
int transcript_text(const struct transcript *transcript, struct buffer *head, struct buffer *tail, uint64_t *missing);

// Closes and frees.
void output_free(struct process_output *output);

#endif
