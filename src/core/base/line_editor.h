// SPDX-License-Identifier: Apache-2.0
// Reads lines from the terminal (stdin and stdout) by libedit: cursor keys, history, completion. Text is UTF-8, and
// LC_CTYPE is set so. There is one editor.
#ifndef SBA_CORE_LINE_EDITOR_H
#define SBA_CORE_LINE_EDITOR_H

#include "core/base/error.h"

#include <histedit.h>
#include <stddef.h>

// Opens the editor; complete, a function of libedit, is called by the tab key. Error: "not_a_terminal" if stdin or
// stdout is not a terminal that can move its cursor.
int line_editor_open(unsigned char (*complete)(EditLine *, int), struct error *error);

// Shows a prompt and reads a line. 1: *line is the line without its newline, valid until the next call; 0: the end of
// the input (Ctrl-D); -1: *error is "cancelled" (Ctrl-C, which leaves the typed text visible) or "timeout".
int line_editor_read(const char *text, const char **line, size_t *size, struct error *error);

// Appends an entry to the history, which keeps the last 1000.
void line_editor_remember(const char *entry);

#endif
