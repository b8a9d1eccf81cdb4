// SPDX-License-Identifier: Apache-2.0
// Regular expressions over files, see search.h.
//
// A file is read in pieces cut at line ends. Where the pattern could be made blind to newlines, a piece is matched as a
// whole; else, and where there are carriage returns or no JIT, line by line. PCRE2 cannot be interrupted while it
// matches, so it is given a bound on the backtracking at one place of the text, and a bound on how many places to try
// before it returns to us.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/search.h"

#include "core/cleanup.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/search_pattern.h"
#include "core/text.h"

#include <errno.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PIECE = 1 << 20,          // bytes read at a time
    LINE_MAX_BYTES = 1 << 26, // a longer line is searched in parts of this size
    BINARY_PREFIX = 8192,
    TEXT_MAX = 1000, // bytes of a long line that are shown
    TEXT_BEFORE = 200,
    MATCH_LIMIT = 5000000, // steps of backtracking at one place: about 20 ms
    HEAP_LIMIT = 65536,    // KiB, without JIT
    JIT_STACK_MAX = 8 << 20,
    WINDOW_MIN = 16, // places to try at a time, adapted so that a window takes milliseconds
    WINDOW_MAX = 1 << 20,
};

struct search_regex {
    pcre2_code *line;    // matches one line
    pcre2_code *lines;   // matches many; NULL where it cannot be had
    pcre2_code *literal; // what every matching line holds; NULL where it is not known or does not help
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    size_t window;
};

// One file being searched.
struct scan {
    struct search_regex *regex;
    const char *path;
    struct search_results *results;
    struct error *error;
    size_t path_at, path_size; // of the path in the results, once it is there
    int64_t line;              // number of the line that begins at counted
    const char *counted;
    int64_t last; // line of the last match
};

struct span {
    size_t start, end;
};

static int out_of_memory(struct error *error)
{
    return error_set(error, "out_of_memory", 0, "out of memory while searching");
}

static pcre2_code *compile(const char *pattern, size_t size, uint32_t options, int *number, size_t *offset)
{
    options |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_USE_OFFSET_LIMIT;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context) {
        *number = PCRE2_ERROR_NOMEMORY;
        return NULL;
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, size, options, number, offset, context);
    pcre2_compile_context_free(context);
    return code;
}

// Where the kernel grants no memory that is writable and executable, PCRE2 interprets; that is slower only.
static bool compile_to_machine_code(pcre2_code *code)
{
    return pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
}

// Interpreted, each match would look through the whole piece for invalid UTF-8: then there is none.
static pcre2_code *compile_for_pieces(const struct buffer *pattern, uint32_t options)
{
    int number;
    size_t offset;
    pcre2_code *code = compile(pattern->data ? pattern->data : "", pattern->size, options, &number, &offset);
    if (code && compile_to_machine_code(code))
        return code;
    pcre2_code_free(code);
    return NULL;
}

static void prepare_pieces(struct search_regex *regex, const char *pattern, size_t size, uint32_t options)
{
    cleanup_buffer struct buffer rewritten = {0}, literal = {0};
    if (!search_pattern_for_lines(pattern, size, &rewritten))
        return;
    if (!(options & PCRE2_CASELESS) && search_pattern_literal(pattern, size, &literal))
        regex->literal = compile_for_pieces(&literal, PCRE2_LITERAL);
    if (!regex->literal)
        regex->lines = compile_for_pieces(&rewritten, options | PCRE2_MULTILINE | PCRE2_ALT_CIRCUMFLEX);
}

static bool prepare_to_match(struct search_regex *regex)
{
    regex->data = pcre2_match_data_create(1, NULL);
    regex->context = pcre2_match_context_create(NULL);
    regex->stack = pcre2_jit_stack_create(32 << 10, JIT_STACK_MAX, NULL);
    if (!regex->data || !regex->context)
        return false;
    pcre2_set_match_limit(regex->context, MATCH_LIMIT);
    pcre2_set_heap_limit(regex->context, HEAP_LIMIT);
    if (regex->stack)
        pcre2_jit_stack_assign(regex->context, NULL, regex->stack);
    regex->window = WINDOW_MIN;
    return true;
}

struct search_regex *search_compile(const char *pattern, size_t size, bool ignore_case, struct error *error)
{
    struct search_regex *regex = calloc(1, sizeof *regex);
    uint32_t options = PCRE2_NEVER_BACKSLASH_C | (ignore_case ? PCRE2_CASELESS : 0);
    int number = PCRE2_ERROR_NOMEMORY;
    size_t offset = 0;
    if (regex)
        regex->line = compile(pattern, size, options, &number, &offset);
    if (regex && regex->line) {
        compile_to_machine_code(regex->line);
        prepare_pieces(regex, pattern, size, options);
        if (prepare_to_match(regex))
            return regex;
        number = PCRE2_ERROR_NOMEMORY;
    }
    search_regex_free(regex);
    char reason[256];
    pcre2_get_error_message(number, (PCRE2_UCHAR *)reason, sizeof reason);
    error_set(error, "invalid_pattern", 0, "the pattern is no regular expression that PCRE2 takes: %s, at byte %zu",
              reason, offset + 1);
    return NULL;
}

void search_regex_free(struct search_regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->line);
    pcre2_code_free(regex->lines);
    pcre2_code_free(regex->literal);
    pcre2_match_data_free(regex->data);
    pcre2_match_context_free(regex->context);
    pcre2_jit_stack_free(regex->stack);
    free(regex);
}

void search_results_free(struct search_results *results)
{
    free(results->matches);
    buffer_free(&results->bytes);
    results->matches = NULL;
    results->count = results->capacity = 0;
}

static bool is_continuation(char byte)
{
    return (byte & 0xc0) == 0x80;
}

// The next two go over blocks of a constant size, so that the compiler makes vectors of them.
enum { BLOCK = 192 };

static int64_t count_newlines(const char *bytes, size_t size)
{
    int64_t count = 0;
    for (; size >= BLOCK; bytes += BLOCK, size -= BLOCK) {
        unsigned char few = 0; // at most BLOCK
        for (size_t i = 0; i < BLOCK; i++)
            few = (unsigned char)(few + (bytes[i] == '\n'));
        count += few;
    }
    for (size_t i = 0; i < size; i++)
        count += bytes[i] == '\n';
    return count;
}

static bool holds(const char *bytes, size_t size, char wanted)
{
    for (; size >= BLOCK; bytes += BLOCK, size -= BLOCK) {
        unsigned char any = 0;
        for (size_t i = 0; i < BLOCK; i++)
            any |= bytes[i] == wanted;
        if (any)
            return true;
    }
    return memchr(bytes, wanted, size) != NULL;
}

static int too_costly(struct scan *scan, const char *at, int number)
{
    int64_t line = scan->line + count_newlines(scan->counted, (size_t)(at - scan->counted));
    if (number == PCRE2_ERROR_NOMEMORY)
        return out_of_memory(scan->error);
    const char *what = number == PCRE2_ERROR_JIT_STACKLIMIT || number == PCRE2_ERROR_HEAPLIMIT ? "memory" : "time";
    return error_set(scan->error, "pattern_too_costly", 0,
                     "the pattern takes too much %s on file %s line %lld; simplify it (nested repetitions such as "
                     "(a+)+ are the usual cause)",
                     what, scan->path, (long long)line);
}

// Milliseconds of a clock that costs next to nothing to read and moves in steps of some milliseconds.
static int64_t coarse_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void adapt_window(struct search_regex *regex, size_t tried, int64_t milliseconds)
{
    if (milliseconds > 10 && tried > WINDOW_MIN)
        regex->window = tried / 4 > WINDOW_MIN ? tried / 4 : WINDOW_MIN;
    else if (milliseconds == 0 && tried == regex->window && regex->window < WINDOW_MAX)
        regex->window *= 4;
}

// The last place to try in this call: a whole window, not ending inside a character.
static size_t window_end(const struct search_regex *regex, const char *bytes, size_t size, size_t from)
{
    if (size - from <= regex->window)
        return size;
    size_t last = from + regex->window - 1;
    while (last + 1 < size && is_continuation(bytes[last + 1]))
        last++;
    return last;
}

// The first match in bytes that begins at from or later: 1 and *found, 0, or -1.
static int match(struct scan *scan, const pcre2_code *code, const char *bytes, size_t size, size_t from,
                 struct span *found)
{
    struct search_regex *regex = scan->regex;
    size_t last;
    do {
        last = window_end(regex, bytes, size, from);
        int64_t began = coarse_clock();
        pcre2_set_offset_limit(regex->context, last);
        int count = pcre2_match(code, (PCRE2_SPTR)bytes, size, from, 0, regex->data, regex->context);
        int64_t took = coarse_clock() - began;
        if (took > 0 && interrupt_check(scan->error) < 0)
            return -1;
        if (count >= 0) {
            const size_t *offsets = pcre2_get_ovector_pointer(regex->data);
            *found = (struct span){offsets[0], offsets[1]};
            return 1;
        }
        if (count != PCRE2_ERROR_NOMATCH)
            return too_costly(scan, bytes + from, count);
        adapt_window(regex, last - from + 1, took);
        from = last + 1;
    } while (last < size);
    return 0;
}

static const char *line_end(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline : end;
}

static const char *line_start(const char *bytes, const char *at)
{
    const char *newline = at > bytes ? memrchr(bytes, '\n', (size_t)(at - bytes)) : NULL;
    return newline ? newline + 1 : bytes;
}

// Where the next line starts that can match: *at, or where the literal is that every match holds. 1 and *at, 0, or -1.
static int next_candidate(struct scan *scan, const char *bytes, size_t size, size_t *at)
{
    struct span found;
    if (!scan->regex->literal)
        return *at <= size;
    int count = *at < size ? match(scan, scan->regex->literal, bytes, size, *at, &found) : 0;
    if (count > 0)
        *at = (size_t)(line_start(bytes, bytes + found.start) - bytes);
    return count;
}

// The same as match for a piece of lines, one by one, without their carriage returns.
static int match_line_by_line(struct scan *scan, const char *bytes, size_t size, size_t at, struct span *found)
{
    for (;;) {
        int count = next_candidate(scan, bytes, size, &at);
        if (count <= 0)
            return count;
        size_t end = (size_t)(line_end(bytes + at, bytes + size) - bytes), length = end - at;
        if (length && bytes[end - 1] == '\r')
            length--;
        count = match(scan, scan->regex->line, bytes + at, length, 0, found);
        if (count != 0) {
            found->start += at;
            found->end += at;
            return count;
        }
        at = end + 1;
    }
}

// Appends the line to bytes as UTF-8; a long one cut around where the match starts.
static int append_text(struct buffer *bytes, const char *line, size_t size, size_t start)
{
    size_t from = 0, to = size;
    if (size > TEXT_MAX) {
        from = start > TEXT_BEFORE ? start - TEXT_BEFORE : 0;
        if (from > size - TEXT_MAX)
            from = size - TEXT_MAX;
        to = from + TEXT_MAX;
    }
    for (int i = 0; i < 3 && from > 0 && is_continuation(line[from]); i++)
        from++;
    for (int i = 0; i < 3 && to < size && is_continuation(line[to]); i++)
        to--;
    if (from > 0 && buffer_append(bytes, "...", 3) < 0)
        return -1;
    if (text_repair(line + from, to - from, bytes) < 0)
        return -1;
    return to < size ? buffer_append(bytes, "...", 3) : 0;
}

static int reserve_match(struct search_results *results)
{
    if (results->count < results->capacity)
        return 0;
    size_t capacity = results->capacity ? results->capacity * 2 : 64;
    struct search_match *matches = realloc(results->matches, capacity * sizeof *matches);
    if (!matches)
        return -1;
    results->matches = matches;
    results->capacity = capacity;
    return 0;
}

// The path stands once in the results, before the first match of its file.
static int append_path(struct scan *scan)
{
    struct buffer *bytes = &scan->results->bytes;
    if (scan->path_size > 0)
        return 0;
    scan->path_at = bytes->size;
    if (text_repair(scan->path, strlen(scan->path), bytes) < 0)
        return -1;
    scan->path_size = bytes->size - scan->path_at;
    return 0;
}

// Bytes that the match takes in the result, with a comma; SIZE_MAX where memory is out.
static size_t json_size(const struct search_results *results, const struct search_match *match)
{
    cleanup_buffer struct buffer json = {0};
    if (json_quote(results->bytes.data + match->path, match->path_size, &json) < 0 ||
        json_integer(match->line, &json) < 0 ||
        json_quote(results->bytes.data + match->text, match->text_size, &json) < 0)
        return SIZE_MAX;
    return json.size + strlen("{\"path\":,\"line\":,\"text\":},");
}

// 0, or 1 where a limit is reached: then the match is not added.
static int add_match(struct scan *scan, const char *line, size_t size, size_t start)
{
    struct search_results *results = scan->results;
    if (results->count >= results->max_matches) {
        results->limit = SEARCH_MATCHES;
        return 1;
    }
    if (append_path(scan) < 0 || reserve_match(results) < 0)
        return out_of_memory(scan->error);
    size_t text_at = results->bytes.size;
    if (append_text(&results->bytes, line, size, start) < 0)
        return out_of_memory(scan->error);
    struct search_match match = {scan->path_at, scan->path_size, text_at, results->bytes.size - text_at, scan->last};
    size_t cost = json_size(results, &match);
    if (cost == SIZE_MAX)
        return out_of_memory(scan->error);
    if (results->json_bytes + cost > results->max_bytes) {
        results->limit = SEARCH_BYTES;
        return 1;
    }
    results->json_bytes += cost;
    results->matches[results->count++] = match;
    return 0;
}

// Adds the line of bytes in which a match starts. *next becomes where the next line starts.
static int add_line(struct scan *scan, const char *bytes, size_t size, size_t start, size_t *next)
{
    const char *line = line_start(bytes, bytes + start);
    const char *end = line_end(bytes + start, bytes + size);
    size_t length = (size_t)(end - line);
    if (length && line[length - 1] == '\r')
        length--;
    *next = (size_t)(end - bytes) + 1;
    if (scan->line == scan->last) // a further part of a line that is too long to be searched at once
        return 0;
    scan->last = scan->line;
    return add_match(scan, line, length, start - (size_t)(line - bytes));
}

// The next match of a piece. Where matching together is too costly, only going line by line tells whether and where it
// is.
static int next_match(struct scan *scan, const char *bytes, size_t size, size_t at, bool *together, struct span *found)
{
    if (*together) {
        int count = match(scan, scan->regex->lines, bytes, size, at, found);
        if (count >= 0 || strcmp(scan->error->code, "pattern_too_costly") != 0)
            return count;
        error_clear(scan->error);
        *together = false;
    }
    return match_line_by_line(scan, bytes, size, at, found);
}

// Searches whole lines, without the newline of the last; scan->line is the number of the line that comes next. 0; 1
// where a limit is reached; -1.
static int search_lines(struct scan *scan, const char *bytes, size_t size)
{
    bool together = scan->regex->lines && !holds(bytes, size, '\r');
    for (size_t at = 0; at <= size;) {
        struct span found;
        scan->counted = bytes + at;
        int count = next_match(scan, bytes, size, at, &together, &found);
        if (count < 0)
            return -1;
        scan->line += count_newlines(bytes + at, (count ? found.start : size) - at);
        int stop = count ? add_line(scan, bytes, size, found.start, &at) : 0;
        if (stop)
            return stop;
        scan->line++;
        if (!count)
            break;
    }
    return 0;
}

// Fills the buffer up to its capacity. Sets *ended at the end of the file.
static int fill(struct scan *scan, int fd, struct buffer *buffer, bool *ended)
{
    while (buffer->size < buffer->capacity) {
        if (interrupt_check(scan->error) < 0)
            return -1;
        ssize_t count = read(fd, buffer->data + buffer->size, buffer->capacity - buffer->size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return error_system(scan->error, errno, "cannot read %s", scan->path);
        *ended = count == 0;
        if (*ended)
            return 0;
        buffer->size += (size_t)count;
    }
    return 0;
}

// Searches the whole lines in the buffer and leaves the begun one at its start. 0, 1 where a limit is reached, or -1.
static int search_buffer(struct scan *scan, struct buffer *buffer, bool ended)
{
    if (buffer->size == 0)
        return 0;
    const char *newline = memrchr(buffer->data, '\n', buffer->size);
    bool is_part = !newline && !ended;
    if (is_part && buffer->capacity < LINE_MAX_BYTES)
        return buffer_reserve(buffer, buffer->capacity) < 0 ? out_of_memory(scan->error) : 0;

    size_t lines = newline ? (size_t)(newline - buffer->data) : buffer->size;
    size_t done = newline ? lines + 1 : lines;
    if (ended && done < buffer->size)
        lines = done = buffer->size; // the last line has no newline
    int stop = search_lines(scan, buffer->data, lines);
    if (is_part)
        scan->line--;
    memmove(buffer->data, buffer->data + done, buffer->size - done);
    buffer->size -= done;
    return stop;
}

static int search_pieces(struct scan *scan, int fd, struct buffer *buffer)
{
    bool ended = false;
    for (bool first = true; !ended; first = false) {
        if (fill(scan, fd, buffer, &ended) < 0)
            return -1;
        if (first) {
            if (memchr(buffer->data, '\0', buffer->size < BINARY_PREFIX ? buffer->size : BINARY_PREFIX))
                return 0;
            scan->results->files_searched++;
        }
        int stop = search_buffer(scan, buffer, ended);
        if (stop)
            return stop;
    }
    return 0;
}

int search_descriptor(struct search_regex *regex, int fd, const char *path, struct search_scratch *scratch,
                      struct search_results *results, struct error *error)
{
    struct scan scan = {.regex = regex, .path = path, .results = results, .error = error, .line = 1};
    scratch->buffer.size = 0;
    if (buffer_reserve(&scratch->buffer, PIECE) < 0)
        return out_of_memory(error);
    return search_pieces(&scan, fd, &scratch->buffer) < 0 ? -1 : 0;
}
