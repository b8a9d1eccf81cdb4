// SPDX-License-Identifier: Apache-2.0
// Reads lines from a terminal, see line_editor.h.
#include "core/base/line_editor.h"

#include "core/base/interrupt.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { ENTRIES_KEPT = 1000 };

static EditLine *edit; // NULL: not open
static History *entries;
static const char *prompt_text;
static bool leaving; // an interrupt ends the line
static volatile sig_atomic_t must_redraw;

static void on_redraw(int unused)
{
    (void)unused;
    must_redraw = 1;
}

// Draws the line again: after SIGWINCH the width differs; after SIGCONT a shell has used the terminal.
static void redraw(void)
{
    must_redraw = 0;
    el_set(edit, EL_PREP_TERM, 0);
    el_set(edit, EL_PREP_TERM, 1);
    el_resize(edit);
    fputs("\r\033[J", stdout); // clears from the start of this row on
    el_set(edit, EL_REFRESH);
}

// First gives the key that goes to the end of the line, so that what was typed stays to be read; then ends the line.
static int leave(wchar_t *character)
{
    *character = L'E' & 0x1f;
    leaving = !leaving;
    if (leaving)
        return 1;
    fputs(interrupt_signal() == SIGINT ? "^C\n" : "\n", stdout);
    return -1;
}

// Bytes that are not UTF-8 are dropped. -1 if work must stop.
static int read_character(EditLine *unused, wchar_t *character)
{
    (void)unused;
    mbstate_t state = {0};
    for (size_t length = (size_t)-2; length == (size_t)-2;) {
        struct pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
        char byte;
        if (must_redraw)
            redraw();
        if (interrupt_reason() != INTERRUPT_NONE)
            return leave(character);
        if (poll(sources, 2, interrupt_poll_timeout(-1)) <= 0 || !sources[0].revents)
            continue;
        ssize_t got = read(STDIN_FILENO, &byte, 1);
        if (got <= 0)
            return (int)got;
        length = mbrtowc(character, &byte, 1, &state);
        if (length == (size_t)-1) {
            state = (mbstate_t){0};
            length = (size_t)-2;
        }
    }
    return 1;
}

static char *prompt(EditLine *unused)
{
    (void)unused;
    return (char *)prompt_text; // libedit only reads it
}

// Binds keys that terminals send and libedit does not bind.
static void bind_keys(unsigned char (*complete)(EditLine *, int))
{
    static const char *const keys[][2] = {
        {"\\t", "complete"},           {"\\e[3~", "ed-delete-next-char"}, {"\\e[1~", "ed-move-to-beg"},
        {"\\e[4~", "ed-move-to-end"},  {"\\e[1;5C", "em-next-word"},      {"\\e[1;5D", "ed-prev-word"},
        {"^W", "ed-delete-prev-word"}, {"^R", "em-inc-search-prev"},
    };
    el_wset(edit, EL_ADDFN, L"complete", L"Completes a name", complete); // el_set would leak copies of the names
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        el_set(edit, EL_BIND, keys[i][0], keys[i][1], NULL);
}

static bool is_terminal(void)
{
    const char *name = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && name && *name && strcmp(name, "dumb") != 0;
}

int line_editor_open(unsigned char (*complete)(EditLine *, int), struct error *error)
{
    HistEvent event;
    if (!is_terminal())
        return error_set(error, "not_a_terminal", 0, "stdin and stdout are no terminal on which lines can be edited");
    setlocale(LC_CTYPE, "C.UTF-8");
    FILE *silent = fopen("/dev/null", "we"); // for libedit's error messages
    entries = history_init();
    edit = entries && silent ? el_init("cynode-sba", stdin, stdout, silent) : NULL;
    if (!edit)
        return error_system(error, errno, "cannot prepare the terminal");
    el_set(edit, EL_TERMINAL, "xterm"); // which nearly every terminal follows
    el_set(edit, EL_EDITOR, "emacs");
    el_set(edit, EL_PROMPT, prompt);
    el_set(edit, EL_GETCFN, read_character);
    el_set(edit, EL_HIST, history, entries);
    history(entries, &event, H_SETSIZE, ENTRIES_KEPT);
    history(entries, &event, H_SETUNIQUE, 1);
    bind_keys(complete);
    signal(SIGWINCH, on_redraw);
    signal(SIGCONT, on_redraw);
    return 0;
}

int line_editor_read(const char *text, const char **line, size_t *size, struct error *error)
{
    int count = 0;
    prompt_text = text;
    must_redraw = 0;
    el_set(edit, EL_PREP_TERM, 1); // before the prompt, so that nothing typed is echoed twice
    *line = el_gets(edit, &count);
    if (interrupt_check(error) < 0)
        return -1;
    if (!*line || count <= 0)
        return 0;
    *size = (size_t)((*line)[count - 1] == '\n' ? count - 1 : count);
    return 1;
}

void line_editor_remember(const char *entry)
{
    HistEvent event;
    history(entries, &event, H_ENTER, entry);
}
