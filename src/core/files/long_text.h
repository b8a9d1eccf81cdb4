// SPDX-License-Identifier: Apache-2.0
// A text that is too long to be copied: measured and written a piece at a time, redacted.
#ifndef SBA_CORE_LONG_TEXT_H
#define SBA_CORE_LONG_TEXT_H

#include "core/files/file_log.h"

struct long_text {
    const char *bytes; // borrowed; NULL: a span of fd, which ends earlier if the file does
    int fd;
    size_t offset, size;
    unsigned cuts; // the ends at which it was cut, as in secret.h
    bool base64;   // how it is written, else as UTF-8
    int64_t most;  // bytes of the redacted text that are written; what follows is left out
};

struct long_text_measure {
    int64_t length; // bytes of the redacted text
    bool is_utf8;   // but for an incomplete character at its end
    size_t half;    // bytes of that character
};

int long_text_measure(const struct long_text *text, struct long_text_measure *measure, struct error *error);

// Appends what stands between the quotes of a JSON string to a line of the log that goes on.
int long_text_write(const struct long_text *text, struct file_log *log, struct error *error);

#endif
