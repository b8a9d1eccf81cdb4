// SPDX-License-Identifier: Apache-2.0
// The output of a command: read from two pipes, kept up to a limit, counted past it.
#ifndef SBA_CORE_PROCESS_OUTPUT_H
#define SBA_CORE_PROCESS_OUTPUT_H

#include "core/base/spool.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PROCESS_OUTPUT_SHOWN = 1 << 20, // most bytes of both streams as they came
    PROCESS_OUTPUT_NOTE = 80,       // bytes left free for a line between head and tail: NOTE_ROOM of excerpt.lua
    PROCESS_OUTPUT_NEWS = 64 << 10, // bytes of news
};

enum { PROCESS_STDOUT, PROCESS_STDERR, PROCESS_STREAMS };

// What is kept of a stream: UTF-8, repaired, without secrets.
struct process_text {
    struct buffer text; // all of it, unless there is a spool
    struct spool spool; // fd -1: there is none
    bool truncated;
};

struct process_output_stream {
    int fd; // reading end, non-blocking, owned; -1: at its end or closed
    uint64_t printed;
    bool widened;             // the pipe was made larger
    struct process_text text; // what is kept
    struct buffer raw;        // what follows it, as it came: neither redacted nor repaired yet
    char half[4];             // the beginning of a character whose rest is still to come; at the end of `both`
    size_t half_size;
};

// Bytes of which the first and the last ones are kept.
struct process_transcript {
    uint64_t total;     // all of them
    struct buffer last; // how they end
    struct buffer head; // how they begin, once that is no longer in `last`
};

// All zero at first, but for descriptors, which are -1.
struct process_output {
    // If not NULL, what stdout says goes here as it comes, and is no output.
    void (*hear)(void *data, const char *bytes, size_t size);
    void *data;
    struct process_output_stream streams[PROCESS_STREAMS];
    size_t limit;      // bytes kept of both streams together
    const char *spool; // where their texts go when they become long, as spool_open takes it; NULL: they stay in memory
    struct process_transcript both; // streams, as they came
    uint64_t seen;                  // bytes of these that process_output_news has passed
    bool starved;                   // memory ran out
};

// Reads what a stream's pipe holds now; closes it at its end.
void process_output_read(struct process_output *output, int stream);

// Reads what the pipes hold, and what comes within that many milliseconds unless both end earlier. Closes both.
void process_output_drain(struct process_output *output, int milliseconds);

// Appends what was printed since the last call: at most PROCESS_OUTPUT_NEWS bytes from its end, or, if whole, all that
// is still there. Returns how many bytes before that are left out.
uint64_t process_output_news(struct process_output *output, bool whole, struct buffer *news);

// Appends both streams in the order in which they came, as UTF-8. Past the limit, or PROCESS_OUTPUT_SHOWN: the head and
// the tail, with *missing bytes between them. Nothing if only one stream printed, and all of it is kept. Secrets are
// redacted. -1: memory is out, now or when it was read.
int process_output_show(const struct process_output *output, struct buffer *head, struct buffer *tail,
                        uint64_t *missing);

// Takes what is kept of each stream. A character cut by the limit is dropped, and both together stay within the limit.
// -1: memory is out; both can be freed all the same.
int process_output_take(struct process_output *output, struct process_text texts[PROCESS_STREAMS]);

// Closes the pipes and frees all memory.
void process_output_free(struct process_output *output);

#endif
