// SPDX-License-Identifier: Apache-2.0
// The standard streams of the runner. Nothing here fails.
#ifndef SBA_CORE_STREAM_H
#define SBA_CORE_STREAM_H

#include "core/base/parts.h"

#include <stddef.h>
#include <stdint.h>

// Writes to a pipe, socket, terminal or file that others may read slowly, or not at all: waits at most timeout
// milliseconds without progress, and `whole` in all from the first wait on (INT64_MAX: no limit). Returns the bytes
// written, fewer than size when the time was up or the reader left.
size_t stream_write(int fd, const struct parts *parts, int64_t timeout, int64_t whole);

// The columns of a terminal, 80 if it does not say; 0 if fd is not a terminal.
int stream_columns(int fd);

#endif
