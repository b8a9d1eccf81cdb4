// SPDX-License-Identifier: Apache-2.0
// Patterns compiled and matched, see search.h.
//
// PCRE2 cannot be interrupted while it matches, so it is given a bound on the backtracking at one place of the text,
// and a bound on how many places to try before it returns to us.
#include "core/cleanup.h"
#include "core/interrupt.h"
#include "core/search_internal.h"
#include "core/search_pattern.h"

#include <string.h>
#include <time.h>

enum {
    MATCH_LIMIT = 5000000, // steps of backtracking at one place: about 20 ms
    HEAP_LIMIT = 65536,    // KiB, without JIT
    JIT_STACK_MAX = 8 << 20,
    WINDOW_MIN = 16, // places to try at a time, adapted so that a window takes milliseconds
    WINDOW_MAX = 1 << 20,
};

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

// Fills a new regex. 0, or -1 and what PCRE2 says of the pattern at offset.
static int prepare(struct search_regex *regex, const char *pattern, size_t size, uint32_t options, int *number,
                   size_t *offset)
{
    regex->line = compile(pattern, size, options, number, offset);
    if (!regex->line)
        return -1;
    compile_to_machine_code(regex->line);
    prepare_pieces(regex, pattern, size, options);
    *number = PCRE2_ERROR_NOMEMORY;
    return prepare_to_match(regex) ? 0 : -1;
}

static int explain(int number, size_t offset, struct error *error)
{
    char reason[256];
    if (number == PCRE2_ERROR_NOMEMORY)
        return search_out_of_memory(error);
    pcre2_get_error_message(number, (PCRE2_UCHAR *)reason, sizeof reason);
    return error_set(error, "invalid_pattern", 0,
                     "the pattern is no regular expression that PCRE2 takes: %s, at byte %zu", reason, offset + 1);
}

struct search_regex *search_compile(const char *pattern, size_t size, bool ignore_case, struct error *error)
{
    struct search_regex *regex = calloc(1, sizeof *regex);
    uint32_t options = PCRE2_NEVER_BACKSLASH_C | (ignore_case ? PCRE2_CASELESS : 0);
    int number = PCRE2_ERROR_NOMEMORY;
    size_t offset = 0;
    if (regex && prepare(regex, pattern, size, options, &number, &offset) == 0)
        return regex;
    search_regex_free(regex);
    explain(number, offset, error);
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

static int too_costly(struct scan *scan, const char *at, int number)
{
    int64_t line = scan->line + search_count_newlines(scan->counted, (size_t)(at - scan->counted));
    if (number == PCRE2_ERROR_NOMEMORY)
        return search_out_of_memory(scan->error);
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
    while (last + 1 < size && search_is_continuation(bytes[last + 1]))
        last++;
    return last;
}

int search_match(struct scan *scan, const pcre2_code *code, const char *bytes, size_t size, size_t from,
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
