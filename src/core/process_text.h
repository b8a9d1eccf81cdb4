// SPDX-License-Identifier: Apache-2.0
// What a command printed, as UTF-8 text: repaired, bounded, and never cut inside a character.
//
// Error contract: 0, or -1 when memory is out.
#ifndef SBA_CORE_PROCESS_TEXT_H
#define SBA_CORE_PROCESS_TEXT_H

#include "core/process.h"

// A text that is either the stream's own bytes or a repaired copy in `copy`.
struct process_text {
    const char *bytes; // borrowed from stream or copy
    size_t size;
    bool truncated; // there was more, or repair made it longer than the limit
    struct buffer copy;
};

// The stream's text, at most limit bytes.
int process_text(const struct process_stream *stream, size_t limit, struct process_text *text);

// Both streams as they came, into out: head and tail with the count of what lies between, at most 16 KiB.
int process_blend(const struct process_outcome *outcome, struct buffer *out);

#endif
