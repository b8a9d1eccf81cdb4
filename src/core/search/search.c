// SPDX-License-Identifier: Apache-2.0
// Regular expressions over files, see search.h.
//
// A file is read in pieces cut at line ends. A piece is matched as a whole if that finds all in its lines, else line by
// line: also if it has carriage returns or long lines, and without JIT.
#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/base/io.h"
#include "core/search/search_internal.h"
#include "core/text/glob.h"
#include "core/text/secret.h"
#include "core/text/text.h"
#include "core/workspace/workspace.h"
#include "core/workspace/workspace_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PIECE = 1 << 16,          // bytes that are read, and matched in one call, which nothing interrupts
    LINE_MAX_BYTES = 1 << 26, // a longer line is searched in parts of this size
    SHORT_LINE = 1024,        // bytes; longer lines are not matched together with others
    BINARY_PREFIX = 8192,
    RECHECKS_MAX = 1000, // of a file; each may follow a match that goes over a whole piece
    TEXT_MAX = 1000,     // bytes of a long line that are shown
    TEXT_BEFORE = 200,   // of them before the match
};

void search_results_free(struct search_results *results)
{
    buffer_free(&results->json);
    buffer_free(&results->shown);
}

static int append_string(struct buffer *bytes, const char *string)
{
    return buffer_append(bytes, string, strlen(string));
}

// Appends the line to bytes as UTF-8. A long one is cut around the start of the match.
static int append_text(struct buffer *bytes, const char *line, size_t size, size_t start)
{
    size_t from = 0, to = size;
    if (size > TEXT_MAX) {
        from = start > TEXT_BEFORE ? start - TEXT_BEFORE : 0;
        if (from > size - TEXT_MAX)
            from = size - TEXT_MAX;
        to = from + TEXT_MAX;
    }
    if (from > 0)
        from += text_half(line + from, to - from);
    unsigned cuts = (from > 0 ? SECRET_CUT_START : 0) | (to < size ? SECRET_CUT_END : 0);
    return buffer_append(bytes, "...", from > 0 ? 3 : 0) < 0 || secret_append(line + from, to - from, cuts, bytes) < 0
               ? -1
               : buffer_append(bytes, "...", to < size ? 3 : 0);
}

// Appends a path on one line: a line end in a name is "?", as in list_tree, and begins no match of its own.
static int append_path(struct buffer *shown, const struct buffer *path)
{
    size_t from = shown->size;
    if (buffer_append(shown, path->data, path->size) < 0)
        return -1;
    for (char *at = shown->data + from; at < shown->data + shown->size; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    return 0;
}

// Appends the line with the number scan->last, in which a match begins at start, to the results.
static int append_match(struct scan *scan, const char *line, size_t size, size_t start)
{
    struct buffer *json = &scan->results->json, *shown = &scan->results->shown;
    char number[32], in_json[64];
    struct buffer *path = &scan->regex->path;
    snprintf(number, sizeof number, ":%" PRId64 ":", scan->last);
    snprintf(in_json, sizeof in_json, "\",\"line\":%" PRId64 ",\"text\":\"", scan->last);
    if ((path->size == 0 && secret_append(scan->path, strlen(scan->path), 0, path) < 0) ||
        append_path(shown, path) < 0 || append_string(shown, number) < 0 || append_string(json, "{\"path\":\"") < 0 ||
        text_json_append(path->data, path->size, json) < 0 || append_string(json, in_json) < 0)
        return -1;
    size_t text_at = shown->size;
    if (append_text(shown, line, size, start) < 0 ||
        text_json_append(shown->data + text_at, shown->size - text_at, json) < 0)
        return -1;
    return append_string(json, "\"},") < 0 ? -1 : append_string(shown, "\n");
}

// Adds the same: 0; 1: it is not added because of a limit; -1. The results never hold a part of it.
static int add_match(struct scan *scan, const char *line, size_t size, size_t start)
{
    struct search_results *results = scan->results;
    size_t json_size = results->json.size, shown_size = results->shown.size;
    if (results->count >= results->max_matches) {
        results->limit = SEARCH_MATCHES;
        return 1;
    }
    bool appended = append_match(scan, line, size, start) == 0;
    if (appended && results->json.size <= results->max_bytes) {
        results->count++;
        return 0;
    }
    results->json.size = json_size; // no part of it stays
    results->shown.size = shown_size;
    if (!appended)
        return error_memory(scan->error, "cannot search");
    results->limit = SEARCH_BYTES;
    return 1;
}

static bool has_long_line(const char *bytes, size_t size)
{
    while (size > SHORT_LINE) {
        const char *newline = memrchr(bytes, '\n', SHORT_LINE + 1);
        if (!newline)
            return true;
        size -= (size_t)(newline + 1 - bytes);
        bytes = newline + 1;
    }
    return false;
}

static const char *line_start(const char *bytes, const char *at)
{
    const char *newline = at > bytes ? memrchr(bytes, '\n', (size_t)(at - bytes)) : NULL;
    return newline ? newline + 1 : bytes;
}

enum found {
    FAILED = -1,
    NONE,
    FOUND,
    ALONE, // perhaps in a line that must be matched by itself
};

// Matches the line that begins at `at` alone, without its carriage return. *next becomes the start of the next one.
static enum found match_line(struct scan *scan, const char *bytes, size_t size, size_t at, struct span *found,
                             size_t *next)
{
    size_t end = (size_t)(text_line_end(bytes + at, bytes + size) - bytes), length = end - at;
    *next = end + 1;
    if (length && bytes[end - 1] == '\r')
        length--;
    int count = search_match(scan, scan->regex->line, bytes + at, length, 0, found);
    found->start += at;
    found->end += at;
    return count;
}

// Adds the line in which a match starts. *next becomes the start of the next line.
static int add_line(struct scan *scan, const char *bytes, size_t size, size_t start, size_t *next)
{
    const char *line = line_start(bytes, bytes + start);
    const char *end = text_line_end(bytes + start, bytes + size);
    size_t length = (size_t)(end - line);
    if (length && line[length - 1] == '\r')
        length--;
    *next = (size_t)(end - bytes) + 1;
    if (scan->line == scan->last) // another part of a line that is too long to be searched at once
        return 0;
    scan->last = scan->line;
    return add_match(scan, line, length, start - (size_t)(line - bytes));
}

static size_t line_of(const char *bytes, const struct span *found)
{
    return (size_t)(line_start(bytes, bytes + found->start) - bytes);
}

// Matches the lines from `at` on together. ALONE: the line at *line, because a match leaves it or the lines are too
// costly together, which *together then says.
static enum found match_together(struct scan *scan, const char *bytes, size_t size, size_t at, bool *together,
                                 struct span *found, size_t *line)
{
    int count = search_match(scan, scan->regex->lines, bytes, size, at, found);
    *line = at;
    if (count < 0 && strcmp(scan->error->code, "pattern_too_costly") == 0) {
        error_clear(scan->error);
        *together = false;
        return ALONE;
    }
    if (count <= 0 || bytes + found->end <= text_line_end(bytes + found->start, bytes + size))
        return count;
    *line = line_of(bytes, found);
    *together = ++scan->rechecks <= RECHECKS_MAX;
    return ALONE;
}

// Finds the next line from `at` on that holds what each match ends with: ALONE and *line.
static enum found match_tail(struct scan *scan, const char *bytes, size_t size, size_t at, struct span *found,
                             size_t *line)
{
    int count = search_match(scan, scan->regex->tail, bytes, size, at, found);
    if (count <= 0)
        return count;
    *line = line_of(bytes, found);
    return ALONE;
}

// Finds the next match in the lines from `at` on, which are matched together as long as *together.
static enum found next_match(struct scan *scan, const char *bytes, size_t size, size_t at, bool *together,
                             struct span *found)
{
    while (at <= size) {
        enum found next = ALONE;
        if (scan->regex->tail)
            next = match_tail(scan, bytes, size, at, found, &at);
        else if (*together)
            next = match_together(scan, bytes, size, at, together, found, &at);
        if (next != ALONE)
            return next;
        next = match_line(scan, bytes, size, at, found, &at);
        if (next != NONE)
            return next;
    }
    return NONE;
}

// Searches whole lines, without the newline of the last; scan->line is the number of the first. 0; 1: a limit is
// reached; -1.
static int search_lines(struct scan *scan, const char *bytes, size_t size)
{
    bool together = scan->regex->lines && scan->rechecks <= RECHECKS_MAX && !memchr(bytes, '\r', size) &&
                    !has_long_line(bytes, size);
    for (size_t at = 0; at <= size;) {
        struct span found;
        scan->counted = bytes + at;
        enum found next = next_match(scan, bytes, size, at, &together, &found);
        if (next == FAILED)
            return -1;
        if (next == FOUND || !scan->ended)
            scan->line += (int64_t)text_count_newlines(bytes + at, (next == FOUND ? found.start : size) - at);
        int stop = next == FOUND ? add_line(scan, bytes, size, found.start, &at) : 0;
        if (stop)
            return stop;
        scan->line++;
        if (next == NONE)
            return 0;
    }
    return 0;
}

// Fills the buffer up to scan->room.
static int fill_piece(struct scan *scan, int fd, struct buffer *buffer)
{
    if (scan->room > buffer->capacity && buffer_reserve(buffer, scan->room - buffer->size) < 0)
        return error_memory(scan->error, "cannot search");
    while (buffer->size < scan->room) {
        if (interrupt_check(scan->error) < 0)
            return -1;
        ssize_t count = io_read(fd, buffer->data + buffer->size, scan->room - buffer->size, IO_HERE);
        if (count < 0)
            return error_system(scan->error, errno, "cannot read %s", scan->path);
        scan->ended = count == 0;
        if (scan->ended)
            return 0;
        buffer->size += (size_t)count;
    }
    return 0;
}

static void drop_start(struct buffer *buffer, size_t size)
{
    memmove(buffer->data, buffer->data + size, buffer->size - size);
    buffer->size -= size;
}

// Searches the whole lines in the buffer and moves the incomplete one to its start; where there is no whole line, makes
// room for more of it. A part of a line that is too long for that (64 MiB) counts as the same line as what follows.
// 0; 1: a limit is reached; -1.
static int search_buffer(struct scan *scan, struct buffer *buffer)
{
    if (buffer->size == 0)
        return 0;
    const char *newline = memrchr(buffer->data, '\n', buffer->size);
    bool is_part = !newline && !scan->ended;
    if (is_part && scan->room < LINE_MAX_BYTES) {
        scan->room *= 2;
        return 0;
    }

    size_t lines = newline ? (size_t)(newline - buffer->data) : buffer->size;
    size_t done = newline ? lines + 1 : lines;
    if (scan->ended && done < buffer->size)
        lines = done = buffer->size; // the last line has no newline
    int stop = search_lines(scan, buffer->data, lines);
    if (is_part)
        scan->line--;
    drop_start(buffer, done);
    scan->room = PIECE;
    return stop;
}

int search_descriptor(struct search_regex *regex, int fd, const char *path, struct search_results *results,
                      struct error *error)
{
    struct scan scan = {.regex = regex, .path = path, .results = results, .error = error, .line = 1, .room = PIECE};
    struct buffer *piece = &regex->piece;
    int stop = 0;
    piece->size = regex->path.size = 0;
    for (bool first = true; !scan.ended && stop == 0; first = false) {
        if (fill_piece(&scan, fd, piece) < 0)
            return -1;
        if (first && memchr(piece->data, '\0', size_least(piece->size, BINARY_PREFIX)))
            return 0;
        if (first)
            drop_start(piece, text_mark(piece->data, piece->size)); // it is no part of the first line
        results->files_searched += first;
        stop = search_buffer(&scan, piece);
    }
    return stop < 0 ? -1 : 0;
}

struct search_walk {
    struct search_regex *regex;
    const struct workspace *workspace;
    const struct glob *include;
    struct workspace_tree *tree;
    struct search_results *results;
    struct error *error;
};

// Searches the file that the tree is at. A disk error is only counted; any other error ends the search.
static int search_entry(struct search_walk *walk)
{
    struct stat status;
    cleanup_fd int fd = workspace_tree_open_file(walk->tree, &status);
    if (fd < 0) {
        // These three mean that the entry has changed since it was listed.
        walk->results->files_unreadable += errno != ENOENT && errno != ELOOP && errno != EINVAL;
        return 0;
    }
    if (search_descriptor(walk->regex, fd, workspace_tree_path(walk->tree), walk->results, walk->error) == 0)
        return 0;
    if (strcmp(walk->error->code, "io_error") != 0)
        return -1;
    error_clear(walk->error);
    walk->results->files_unreadable++;
    return 0;
}

// Searches the single file that the path names.
static int search_one_file(struct search_walk *walk, const char *path)
{
    struct stat status;
    cleanup_fd int fd = workspace_open_file(walk->workspace, path, 0, &status, walk->error);
    if (fd < 0)
        return -1;
    if (walk->include && !glob_match(walk->include, workspace_tree_path(walk->tree)))
        return 0;
    return search_descriptor(walk->regex, fd, workspace_tree_path(walk->tree), walk->results, walk->error);
}

static int search_all(struct search_walk *walk, const char *path)
{
    struct workspace_tree_entry entry;
    int more = 0, outcome = 0;
    while (outcome == 0 && walk->results->limit == SEARCH_NO_LIMIT &&
           (more = workspace_tree_next(walk->tree, &entry, walk->error)) > 0) {
        if (S_ISDIR(entry.mode) && entry.depth > 0 && strcmp(entry.name, ".git") == 0)
            workspace_tree_skip(walk->tree, &entry);
        else if (S_ISDIR(entry.mode))
            walk->results->files_unreadable += !entry.entered;
        else if (entry.depth == 0)
            outcome = search_one_file(walk, path);
        else if (S_ISREG(entry.mode) && (!walk->include || glob_match(walk->include, workspace_tree_path(walk->tree))))
            outcome = search_entry(walk);
    }
    return more < 0 ? -1 : outcome;
}

int search_files(struct search_regex *regex, const struct workspace *workspace, const char *path,
                 const struct glob *include, struct search_results *results, struct error *error)
{
    const struct workspace_tree_options options = {.max_depth = SIZE_MAX, .hidden = true};
    struct search_walk walk = {
        .regex = regex, .workspace = workspace, .include = include, .results = results, .error = error};
    walk.tree = workspace_tree_open(workspace, path, &options, error);
    if (!walk.tree)
        return -1;
    int outcome = search_all(&walk, path);
    workspace_tree_close(walk.tree);
    return outcome;
}
