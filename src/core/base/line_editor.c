// SPDX-License-Identifier: Apache-2.0
// Reads lines from a terminal, see line_editor.h.
#include "core/base/line_editor.h"

#include "core/base/interrupt.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { ENTRIES_KEPT = 1000 };

static EditLine *edit; // NULL: not open
static History *entries;

// 1: a character, U+FFFD for a byte that is not UTF-8; 0: the end of the input; -1: work must stop. libedit's own
// reader would swallow Ctrl-C, and its signal handlers signal the whole group.
static int read_character(EditLine *unused, wchar_t *character)
{
    (void)unused;
    mbstate_t state = {0};
    while (interrupt_reason() == INTERRUPT_NONE) {
        struct pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
        char byte;
        if (poll(sources, 2, interrupt_poll_timeout(-1)) <= 0 || !sources[0].revents)
            continue;
        ssize_t got = read(STDIN_FILENO, &byte, 1);
        if (got <= 0)
            return (int)got;
        size_t length = mbrtowc(character, &byte, 1, &state);
        if (length == (size_t)-1)
            *character = 0xFFFD;
        if (length != (size_t)-2)
            return 1;
    }
    fputs(interrupt_signal() == SIGINT ? "^C\n" : "\n", stdout);
    return -1;
}

EditLine *line_editor_open(char *(*prompt)(EditLine *), unsigned char (*complete)(EditLine *, int), struct error *error)
{
    // Keys that terminals send and libedit does not bind.
    static const char *const keys[][2] = {
        {"\\t", "complete"},           {"\\e[3~", "ed-delete-next-char"}, {"\\e[1~", "ed-move-to-beg"},
        {"\\e[4~", "ed-move-to-end"},  {"\\e[1;5C", "em-next-word"},      {"\\e[1;5D", "ed-prev-word"},
        {"^W", "ed-delete-prev-word"}, {"^R", "em-inc-search-prev"},
    };
    const char *name = getenv("TERM");
    HistEvent event;
    if (edit)
        return edit;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !name || !*name || strcmp(name, "dumb") == 0) {
        error_set(error, "not_a_terminal", 0, "stdin and stdout are no terminal on which lines can be edited");
        return NULL;
    }
    setlocale(LC_CTYPE, "C.UTF-8");
    FILE *silent = fopen("/dev/null", "we"); // for libedit's error messages
    entries = history_init();
    edit = entries && silent ? el_init("cynode-sba", stdin, stdout, silent) : NULL;
    if (!edit) {
        error_system(error, errno, "cannot prepare the terminal");
        return NULL;
    }
    el_set(edit, EL_TERMINAL, "xterm"); // which nearly every terminal follows
    el_set(edit, EL_EDITOR, "emacs");
    el_set(edit, EL_PROMPT, prompt);
    el_set(edit, EL_GETCFN, read_character);
    el_set(edit, EL_HIST, history, entries);
    history(entries, &event, H_SETSIZE, ENTRIES_KEPT);
    history(entries, &event, H_SETUNIQUE, 1);
    el_wset(edit, EL_ADDFN, L"complete", L"Completes a name", complete); // el_set would leak copies of the names
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        el_set(edit, EL_BIND, keys[i][0], keys[i][1], NULL);
    return edit;
}

void line_editor_remember(const char *entry)
{
    HistEvent event;
    if (entries)
        history(entries, &event, H_ENTER, entry);
}
