// SPDX-License-Identifier: Apache-2.0
// Lines of a person at a terminal (stdin and stdout): cursor keys, history, completion. What libedit draws with.
//
// Text is UTF-8, in and out. One editor at a time; it must not be used from within its completer. Makes the process's
// character set UTF-8 (LC_CTYPE), if it is not that already.
#ifndef SBA_CORE_LINE_EDITOR_H
#define SBA_CORE_LINE_EDITOR_H

#include "core/buffer.h"
#include "core/error.h"

#include <stddef.h>

struct line_editor;

// What a completer found, both empty where there is nothing: what to insert at the cursor, else what to show below.
struct line_completion {
    struct buffer insert;
    struct buffer show; // lines, without the last newline
};

// Fills *found for a line of size bytes with the cursor behind its first cursor bytes. Must return: no longjmp.
typedef void line_completer(void *context, const char *line, size_t size, size_t cursor, struct line_completion *found);

// NULL and *error where stdin or stdout is no terminal, or one that cannot move its cursor ("not_a_terminal"). A
// terminal by an unknown name is taken for an xterm.
struct line_editor *line_editor_open(line_completer *complete, void *context, struct error *error);
void line_editor_close(struct line_editor *editor); // NULL is fine

// Reads a line after a prompt. 1: *line points to it, without its newline, until the next call; 0: the end of the input
// (Ctrl-D); -1: *error is "cancelled" (Ctrl-C, which leaves the half-typed line behind), "timeout" or an I/O error.
int line_editor_read(struct line_editor *editor, const char *prompt, const char **line, size_t *size,
                     struct error *error);

// Puts an entry at the end of the history; the oldest of more than 1000 goes.
void line_editor_remember(struct line_editor *editor, const char *entry);

#endif
