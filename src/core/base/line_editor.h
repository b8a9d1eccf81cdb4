// SPDX-License-Identifier: Apache-2.0
// Reads lines from a terminal (stdin and stdout) by libedit: cursor keys, history, completion.
//
// Text is UTF-8. Use one editor at a time, and not from within its completer. It sets LC_CTYPE to UTF-8.
#ifndef SBA_CORE_LINE_EDITOR_H
#define SBA_CORE_LINE_EDITOR_H

#include "core/base/buffer.h"
#include "core/base/error.h"

#include <stddef.h>

struct line_editor;

// What a completer found: text to insert at the cursor, or else lines to show below. Both are empty if it found
// nothing.
struct line_completion {
    struct buffer insert;
    struct buffer show; // lines, without the last newline
};

// Fills *found for a line of size bytes, with the cursor after its first `cursor` bytes. It must not longjmp.
typedef void line_completer(void *context, const char *line, size_t size, size_t cursor, struct line_completion *found);

// NULL and "not_a_terminal" if stdin or stdout is not a terminal that can move its cursor. An unknown terminal is
// treated as an xterm.
struct line_editor *line_editor_open(line_completer *complete, void *context, struct error *error);
void line_editor_close(struct line_editor *editor); // NULL does nothing

// Shows a prompt and reads a line. 1: *line is the line without its newline, valid until the next call; 0: the end of
// the input (Ctrl-D); -1: *error is "cancelled" (Ctrl-C, which leaves the typed text visible), "timeout" or an I/O
// error.
int line_editor_read(struct line_editor *editor, const char *prompt, const char **line, size_t *size,
                     struct error *error);

// Appends an entry to the history, which keeps the last 1000.
void line_editor_remember(struct line_editor *editor, const char *entry);

#endif
