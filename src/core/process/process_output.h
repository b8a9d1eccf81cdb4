// SPDX-License-Identifier: Apache-2.0
// The output of a command: read from two pipes, kept up to a limit, counted past it.
#ifndef SBA_CORE_PROCESS_OUTPUT_H
#define SBA_CORE_PROCESS_OUTPUT_H

#include "core/base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TRANSCRIPT_MAX = 1 << 20,
    TRANSCRIPT_NOTE = 80, // bytes left free for a line between head and tail
};

// Both streams in the order in which they came: whole up to two halves, past that head and tail. Empty while only one
// stream has printed and is within the limit: its kept bytes are the same.
struct transcript {
    size_t half;
    size_t spare;   // bytes at the end of the first half and at the start of the ring, not shown if bytes are missing
    uint64_t total; // bytes
    struct buffer bytes; // the second half is a ring: byte number n lies at half + (n - half) % half
};

// Output of both streams since the last tick.
struct process_news {
    bool wanted;
    bool whole; // keep all of it; else the last NEWS_MOST to 2 * NEWS_MOST bytes
    struct buffer bytes;
    uint64_t missing; // bytes before those, left out
};

enum { NEWS_MOST = 64 << 10 };

enum { PROCESS_STDOUT, PROCESS_STDERR, PROCESS_STREAMS };

struct process_stream {
    int fd; // reading end, non-blocking, owned; -1: at its end or closed
    struct buffer kept;
    uint64_t printed; // bytes, those left out included
    bool truncated;
    bool widened; // the pipe was made larger
};

struct process_output {
    struct process_stream streams[PROCESS_STREAMS];
    size_t limit; // bytes of both streams kept together
    bool starved; // memory ran out before the limit was reached
    struct transcript transcript;
    struct process_news news;
};

// Reads what a stream holds now, at most 256 KiB; closes it at its end. If memory is out it keeps no more.
void output_read(struct process_output *output, int stream);

// Reads what a stream's pipe holds at this moment, and not what is added meanwhile.
void output_read_waiting(struct process_output *output, int stream);

// Whether more was printed than the limit.
bool output_past_limit(const struct process_output *output);

// Reads what the pipes hold, and what comes within so many milliseconds unless both end earlier. Closes both.
void output_drain(struct process_output *output, int milliseconds);

// Redacts the kept bytes and makes them UTF-8: ill-formed bytes become U+FFFD, a character cut by the limit is dropped,
// and both streams together stay within the limit. -1: memory is out, now or when it was read.
int output_repair(struct process_output *output);

// Forgets the news, once a tick has got them.
void output_seen(struct process_output *output);

// Sets how much the transcript keeps.
void transcript_limit(struct transcript *transcript, size_t limit);

// Appends the transcript as UTF-8. If *missing bytes in the middle are left out, the rest goes to tail, which starts
// after a blank where one is near. A secret that is cut there is redacted. -1: memory is out.
int transcript_text(const struct transcript *transcript, struct buffer *head, struct buffer *tail, uint64_t *missing);

// Closes the pipes and frees all memory.
void output_free(struct process_output *output);

#endif
