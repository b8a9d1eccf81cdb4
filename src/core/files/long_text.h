// SPDX-License-Identifier: Apache-2.0
// Writes a text that is too long to be copied, a piece at a time: redacted, as UTF-8, escaped for JSON.
#ifndef SBA_CORE_LONG_TEXT_H
#define SBA_CORE_LONG_TEXT_H

#include "core/files/file_log.h"

struct long_text {
    const char *bytes; // borrowed; NULL: a span of fd, which ends earlier if the file does
    int fd;
    size_t offset, size;
    unsigned cuts; // the ends at which it was cut, as in secret.h
};

// Appends what stands between the quotes of a string to a line of the log that goes on. If the log is NULL, only counts
// the bytes of the redacted text, which it returns, and *is_utf8 becomes whether they are UTF-8. -1 as in error.h.
int64_t long_text_write(const struct long_text *text, struct file_log *log, bool *is_utf8, struct error *error);

#endif
