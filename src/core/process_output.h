// SPDX-License-Identifier: Apache-2.0
// What a command prints: read from its two pipes, kept up to a limit, counted past it.
#ifndef SBA_CORE_PROCESS_OUTPUT_H
#define SBA_CORE_PROCESS_OUTPUT_H

#include "core/buffer.h"

#include <stdbool.h>
#include <stdint.h>

enum { EXCERPT_HALF = 8192, EXCERPT_SIZE = 2 * EXCERPT_HALF };

// Head and tail of both streams as they came.
struct excerpt {
    uint64_t total; // bytes
    size_t head_size;
    char head[EXCERPT_HALF];
    char tail[EXCERPT_HALF]; // a ring: byte number n after the head lies at n % EXCERPT_HALF
};

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
    struct excerpt excerpt;
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

// Appends head and tail as UTF-8, at most EXCERPT_SIZE bytes, with the count left out between them. Out of memory: -1.
int excerpt_text(const struct excerpt *excerpt, struct buffer *out);

// Closes and frees.
void output_free(struct process_output *output);

#endif
