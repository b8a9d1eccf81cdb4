// SPDX-License-Identifier: Apache-2.0
// Reads lines from the terminal (stdin and stdout) by libedit: cursor keys, history, completion. There is one editor.
#ifndef SBA_CORE_LINE_EDITOR_H
#define SBA_CORE_LINE_EDITOR_H

#include "core/base/error.h"

#include <histedit.h>

// The editor, for el_gets, which gives NULL where work must stop. Opened by the first call, with two functions of
// libedit: complete is for the tab key. Text is UTF-8, and LC_CTYPE is set so. NULL and "not_a_terminal" if stdin or
// stdout is not a terminal that can move its cursor.
EditLine *line_editor_open(char *(*prompt)(EditLine *), unsigned char (*complete)(EditLine *, int),
                           struct error *error);

// Appends an entry to the history, which keeps the last 1000; not before the editor is open.
void line_editor_remember(const char *entry);

#endif
