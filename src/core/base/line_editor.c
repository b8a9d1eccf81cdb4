// SPDX-License-Identifier: Apache-2.0
// Reads lines from a terminal, see line_editor.h.
#include "core/base/line_editor.h"

#include "core/base/interrupt.h"

#include <curses.h>
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

#define CONTROL(letter) ((letter)&0x1f)

enum { ENTRIES_KEPT = 1000 };

struct line_editor {
    EditLine *edit;
    History *history;
    FILE *silent; // for libedit's error messages
    const char *prompt;
    line_completer *complete;
    void *context;
    bool leaving;     // an interrupt ends the line
    sigset_t waiting; // the signal mask while it waits for a key
};

static volatile sig_atomic_t must_redraw;

static void on_redraw(int number)
{
    must_redraw = number;
}

static struct line_editor *editor_of(EditLine *edit)
{
    void *editor = NULL;
    el_get(edit, EL_CLIENTDATA, &editor);
    return editor;
}

static void put_capability(const char *name)
{
    const char *sequence = tgetstr((char *)name, NULL);
    if (sequence)
        tputs(sequence, 1, putchar);
}

// Moves the cursor to the start of the prompt, on a terminal that has rewrapped the line, and clears all after it.
static void go_to_prompt(EditLine *edit)
{
    const LineInfoW *line = el_wline(edit);
    int width = 0, before = (int)strlen(editor_of(edit)->prompt);
    for (const wchar_t *at = line->buffer; at < line->cursor; at++)
        before += wcwidth(*at) > 0 ? wcwidth(*at) : 0;
    el_get(edit, EL_GETTC, "co", &width);
    putchar('\r');
    for (int rows = width > 0 ? before / width : 0; rows > 0; rows--)
        put_capability("up");
    put_capability("cd");
}

// Redraws the line: after SIGWINCH the width differs; after SIGCONT a shell has used the terminal.
static void redraw(EditLine *edit)
{
    if (must_redraw == SIGCONT) {
        el_set(edit, EL_PREP_TERM, 0);
        el_set(edit, EL_PREP_TERM, 1);
        el_resize(edit);
        putchar('\r');
    } else {
        el_resize(edit);
        go_to_prompt(edit);
    }
    must_redraw = 0;
    el_set(edit, EL_REFRESH);
}

// Reads a byte. 1, 0 at the end of the input, or -1 and errno: EINTR if work must stop.
static int read_byte(EditLine *edit, char *byte)
{
    struct line_editor *editor = editor_of(edit);
    for (;;) {
        if (must_redraw)
            redraw(edit);
        if (interrupt_reason() != INTERRUPT_NONE) {
            errno = EINTR;
            return -1;
        }
        int left = interrupt_poll_timeout(-1);
        struct timespec timeout = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000L};
        struct pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
        int ready = ppoll(sources, 2, left < 0 ? NULL : &timeout, &editor->waiting);
        if (ready < 0 && errno != EINTR)
            return -1;
        if (ready <= 0 || !sources[0].revents)
            continue;
        ssize_t got = read(STDIN_FILENO, byte, 1);
        if (got >= 0 || (errno != EINTR && errno != EAGAIN))
            return (int)got;
    }
}

// On an interrupt: first gives the key that goes to the end of the line, so that the typed text stays visible; then the
// error.
static int leave(struct line_editor *editor, wchar_t *character)
{
    if (editor->leaving) {
        fputs(interrupt_signal() == SIGINT ? "^C\n" : "\n", stdout);
        return -1;
    }
    editor->leaving = true;
    *character = CONTROL('E');
    return 1;
}

// Bytes that are not UTF-8 are dropped.
static int read_character(EditLine *edit, wchar_t *character)
{
    mbstate_t state = {0};
    for (;;) {
        char byte;
        int got = read_byte(edit, &byte);
        if (got < 0 && errno == EINTR)
            return leave(editor_of(edit), character);
        if (got <= 0)
            return got;
        size_t length = mbrtowc(character, &byte, 1, &state);
        if (length == (size_t)-1) { // the byte may begin another character
            state = (mbstate_t){0};
            length = mbrtowc(character, &byte, 1, &state);
        }
        if (length == (size_t)-1)
            state = (mbstate_t){0};
        else if (length != (size_t)-2)
            return 1;
    }
}

static unsigned char complete(EditLine *edit, int key)
{
    (void)key;
    struct line_editor *editor = editor_of(edit);
    struct line_completion found = {0};
    const LineInfo *line = el_line(edit);
    unsigned char outcome = CC_ERROR;

    editor->complete(editor->context, line->buffer, (size_t)(line->lastchar - line->buffer),
                     (size_t)(line->cursor - line->buffer), &found);
    if (found.insert.size > 0 && buffer_append(&found.insert, "", 1) == 0) {
        if (el_insertstr(edit, found.insert.data) == 0)
            outcome = CC_REFRESH;
    } else if (found.show.size > 0) {
        fprintf(stdout, "\n%.*s\n", (int)found.show.size, found.show.data);
        outcome = CC_REDISPLAY;
    }
    buffer_free(&found.insert);
    buffer_free(&found.show);
    return outcome;
}

static char *prompt(EditLine *edit)
{
    return (char *)editor_of(edit)->prompt; // libedit only reads it
}

// Binds keys that terminals send and libedit does not bind.
static void bind_keys(EditLine *edit)
{
    static const char *const keys[][2] = {
        {"\\t", "complete"},          {"\\e[3~", "ed-delete-next-char"}, {"\\e[1~", "ed-move-to-beg"},
        {"\\e[4~", "ed-move-to-end"}, {"\\e[H", "ed-move-to-beg"},       {"\\e[F", "ed-move-to-end"},
        {"\\e[1;5C", "em-next-word"}, {"\\e[1;5D", "ed-prev-word"},      {"^W", "ed-delete-prev-word"},
        {"^R", "em-inc-search-prev"},
    };
    el_wset(edit, EL_ADDFN, L"complete", L"Completes a name", complete); // el_set would leak copies of the names
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        el_set(edit, EL_BIND, keys[i][0], keys[i][1], NULL);
}

// The name of the terminal type, or NULL if it cannot move its cursor.
static const char *terminal_name(void)
{
    const char *name = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !name || !*name)
        return NULL;
    if (strcmp(name, "emacs") == 0)
        return NULL;
    if (tgetent(NULL, name) != 1)
        return "xterm"; // which nearly every terminal emulator follows
    return tgetflag("hc") || !tgetstr("le", NULL) || !tgetstr("ce", NULL) ? NULL : name;
}

static int open_history(struct line_editor *editor)
{
    HistEvent event;
    editor->history = history_init();
    if (!editor->history)
        return -1;
    history(editor->history, &event, H_SETSIZE, ENTRIES_KEPT);
    history(editor->history, &event, H_SETUNIQUE, 1);
    return el_set(editor->edit, EL_HIST, history, editor->history);
}

static int open_edit(struct line_editor *editor, const char *terminal)
{
    editor->silent = fopen("/dev/null", "we");
    if (!editor->silent)
        return -1;
    editor->edit = el_init("cynode-sba", stdin, stdout, editor->silent);
    if (!editor->edit)
        return -1;
    el_set(editor->edit, EL_CLIENTDATA, editor);
    el_set(editor->edit, EL_TERMINAL, terminal);
    el_set(editor->edit, EL_EDITOR, "emacs");
    el_set(editor->edit, EL_SIGNAL, 0);
    el_set(editor->edit, EL_PROMPT, prompt);
    el_set(editor->edit, EL_GETCFN, read_character);
    bind_keys(editor->edit);
    return open_history(editor);
}

struct line_editor *line_editor_open(line_completer *completer, void *context, struct error *error)
{
    const char *terminal = terminal_name();
    if (!terminal) {
        error_set(error, "not_a_terminal", 0, "stdin and stdout are no terminal on which lines can be edited");
        return NULL;
    }
    setlocale(LC_CTYPE, "C.UTF-8");
    struct line_editor *editor = calloc(1, sizeof *editor);
    if (editor) {
        editor->complete = completer;
        editor->context = context;
        if (open_edit(editor, terminal) == 0)
            return editor;
    }
    line_editor_close(editor);
    error_system(error, errno, "cannot prepare the terminal");
    return NULL;
}

void line_editor_close(struct line_editor *editor)
{
    if (!editor)
        return;
    if (editor->edit)
        el_end(editor->edit);
    if (editor->history)
        history_end(editor->history);
    if (editor->silent)
        fclose(editor->silent);
    free(editor);
}

// Blocks the signals that ask for a redraw, except while it waits for a key.
static void watch_terminal(struct line_editor *editor, struct sigaction before[2])
{
    sigset_t held;
    struct sigaction action = {.sa_handler = on_redraw};
    sigemptyset(&action.sa_mask);
    sigemptyset(&held);
    sigaddset(&held, SIGWINCH);
    sigaddset(&held, SIGCONT);
    sigprocmask(SIG_BLOCK, &held, &editor->waiting);
    sigaction(SIGWINCH, &action, &before[0]);
    sigaction(SIGCONT, &action, &before[1]);
}

static void unwatch_terminal(struct line_editor *editor, const struct sigaction before[2])
{
    sigaction(SIGWINCH, &before[0], NULL);
    sigaction(SIGCONT, &before[1], NULL);
    sigprocmask(SIG_SETMASK, &editor->waiting, NULL);
}

int line_editor_read(struct line_editor *editor, const char *prompt_text, const char **line, size_t *size,
                     struct error *error)
{
    struct sigaction before[2];
    int count = 0;
    editor->prompt = prompt_text;
    editor->leaving = false;
    watch_terminal(editor, before);
    el_set(editor->edit, EL_PREP_TERM, 1); // before the prompt, so that nothing typed is echoed twice
    errno = 0;
    *line = el_gets(editor->edit, &count);
    int number = errno;
    unwatch_terminal(editor, before);
    if (!*line || count <= 0) {
        if (interrupt_check(error) < 0)
            return -1;
        return number && count < 0 ? error_system(error, number, "cannot read from the terminal") : 0;
    }
    *size = (size_t)count;
    if ((*line)[*size - 1] == '\n')
        --*size;
    return 1;
}

void line_editor_remember(struct line_editor *editor, const char *entry)
{
    HistEvent event;
    history(editor->history, &event, H_ENTER, entry);
}
