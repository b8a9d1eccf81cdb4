// SPDX-License-Identifier: Apache-2.0
// Compiles and matches patterns, see search.h.
//
// PCRE2 does not check the time while it matches. A single line is matched by code with a callback before each item of
// the pattern, which checks the deadline. Many short lines are matched by code without callbacks, in calls that are
// bounded by the length of the lines, by the backtracking at one place and by the size of a piece.
#include "core/base/cleanup.h"
#include "core/base/interrupt.h"
#include "core/search/search_internal.h"
#include "core/text/text.h"

#include <string.h>
#include <time.h>

enum {
    LINE_LIMIT = 5000000, // steps of backtracking at one place of a line, besides LINE_LIMIT_BYTE for each byte
    LINE_LIMIT_BYTE = 4,
    LINES_LIMIT = 2000,        // the same for many lines at once
    LINE_MILLISECONDS = 10000, // for one line
    CALLOUTS_UNCHECKED = 16,   // between two checks of the clock; each may go over the whole line
    HEAP_LIMIT = 65536,        // KiB, without JIT
    JIT_STACK_MAX = 8 << 20,
    TAIL_LEAST = 3, // bytes; many lines hold a shorter one
};

static pcre2_code *compile(const char *pattern, size_t size, uint32_t options, int *number, size_t *offset)
{
    options |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
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

// If the kernel grants no memory that is both writable and executable, PCRE2 interprets, which is only slower.
static bool compile_to_machine_code(pcre2_code *code)
{
    return pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
}

// NULL without JIT: interpreted, each match would check the whole piece for invalid UTF-8.
static pcre2_code *compile_for_pieces(const char *pattern, size_t size, uint32_t options)
{
    int number;
    size_t offset;
    pcre2_code *code = compile(pattern, size, options, &number, &offset);
    if (code && compile_to_machine_code(code))
        return code;
    pcre2_code_free(code);
    return NULL;
}

// Whether an alternative after the first can match nothing: (a|), (a|^). The JIT of PCRE2 10.42 misses matches of such
// patterns when it backtracks into them, for example (?:a|)\t*a in "a".
static bool has_empty_alternative(const char *pattern, size_t size)
{
    const char *end = pattern + size, *bar = pattern;
    while ((bar = memchr(bar, '|', (size_t)(end - bar)))) {
        const char *at = ++bar;
        for (size_t skipped = 1; skipped; at += skipped) {
            size_t left = (size_t)(end - at);
            bool is_pair =
                left > 1 && (memcmp(at, "?:", 2) == 0 || memcmp(at, "\\b", 2) == 0 || memcmp(at, "\\B", 2) == 0);
            skipped = is_pair ? 2 : left && (*at == '^' || *at == '(');
        }
        if (at == end || *at == '|' || *at == ')')
            return true;
    }
    return false;
}

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

// Size of what opens a group that may stand in a pattern for pieces, at a parenthesis; 0: of another kind.
static size_t plain_group(const char *at, size_t size)
{
    static const char *const kinds[] = {"(?:", "(?i)", "(?i:", "(?P<", "(?'"};
    if (size < 2 || !is_one_of(at[1], "?*"))
        return 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i]);
        if (size >= length && memcmp(at, kinds[i], length) == 0)
            return length;
    }
    return 0;
}

// Whether each line that matches alone also begins a match in the whole text. Not if the pattern can see past the end
// of a line, or never gives back what it took there: look-around, atomic groups, possessive quantifiers, \A, \z, verbs.
static bool works_on_pieces(const char *pattern, size_t size)
{
    for (size_t at = 0, step; at < size; at += step) {
        char next = at + 1 < size ? pattern[at + 1] : '\0';
        step = pattern[at] == '\\' ? 2 : pattern[at] == '(' ? plain_group(pattern + at, size - at) : 1;
        bool sees_more = pattern[at] == '\\' && is_one_of(next, "AzZGKQ");
        bool is_possessive = is_one_of(pattern[at], "*+?}") && next == '+';
        if (step == 0 || sees_more || is_possessive)
            return false;
    }
    return true;
}

// Size of the plain text with which a pattern for pieces ends, and so each match: NULL in \w+ = NULL. Only lines that
// hold it need be matched, and PCRE2 finds text fastest. 0: too short, or there are alternatives.
static size_t tail_size(const char *pattern, size_t size)
{
    size_t start = size;
    while (start > 0 && !memchr("\\^$.|?*+()[]{}", pattern[start - 1], 14))
        start--;
    bool is_escaped = start > 0 && pattern[start - 1] == '\\';
    return is_escaped || size - start < TAIL_LEAST || memchr(pattern, '|', size) ? 0 : size - start;
}

static bool prepare_to_match(struct search_regex *regex)
{
    regex->data = pcre2_match_data_create(1, NULL);
    regex->context = pcre2_match_context_create(NULL);
    regex->stack = pcre2_jit_stack_create(32 << 10, JIT_STACK_MAX, NULL);
    if (!regex->data || !regex->context)
        return false;
    pcre2_set_heap_limit(regex->context, HEAP_LIMIT);
    if (regex->stack)
        pcre2_jit_stack_assign(regex->context, NULL, regex->stack);
    return true;
}

// Fills a new regex. 0, or -1 and PCRE2's error with its offset in the pattern.
static int prepare(struct search_regex *regex, const char *pattern, size_t size, uint32_t options, int *number,
                   size_t *offset)
{
    regex->line = compile(pattern, size, options | PCRE2_AUTO_CALLOUT, number, offset);
    if (!regex->line)
        return -1;
    if (!has_empty_alternative(pattern, size)) {
        compile_to_machine_code(regex->line);
        bool on_pieces = works_on_pieces(pattern, size);
        size_t tail = on_pieces ? tail_size(pattern, size) : 0;
        if (tail > 0)
            regex->tail = compile_for_pieces(pattern + size - tail, tail, options | PCRE2_CASELESS);
        else if (on_pieces)
            regex->lines = compile_for_pieces(pattern, size, options | PCRE2_MULTILINE | PCRE2_ALT_CIRCUMFLEX);
    }
    *number = PCRE2_ERROR_NOMEMORY;
    return prepare_to_match(regex) ? 0 : -1;
}

static int explain(int number, size_t offset, struct error *error)
{
    char reason[256];
    if (number == PCRE2_ERROR_NOMEMORY)
        return error_memory(error, "cannot search");
    pcre2_get_error_message(number, (PCRE2_UCHAR *)reason, sizeof reason);
    return error_set(error, "invalid_pattern", 0, "invalid regular expression: %s, at byte %zu", reason, offset + 1);
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
    pcre2_code_free(regex->tail);
    pcre2_match_data_free(regex->data);
    pcre2_match_context_free(regex->context);
    pcre2_jit_stack_free(regex->stack);
    buffer_free(&regex->piece);
    buffer_free(&regex->path);
    free(regex);
}

static int too_costly(struct scan *scan, const char *at, int number)
{
    int64_t line = scan->line + (int64_t)text_count_newlines(scan->counted, (size_t)(at - scan->counted));
    if (number == PCRE2_ERROR_NOMEMORY)
        return error_memory(scan->error, "cannot search");
    const char *what = number == PCRE2_ERROR_JIT_STACKLIMIT || number == PCRE2_ERROR_HEAPLIMIT ? "memory" : "time";
    return error_set(scan->error, "pattern_too_costly", 0,
                     "the pattern takes too much %s on file %s line %lld; simplify it (nested repetitions such as "
                     "(a+)+ are the usual cause)",
                     what, scan->path, (long long)line);
}

// Milliseconds of a clock that is cheap to read and has steps of some milliseconds.
static int64_t coarse_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Called before each item of a pattern that is matched against one line.
static int look_at_clock(pcre2_callout_block *block, void *data)
{
    (void)block;
    struct scan *scan = data;
    if (++scan->callouts % CALLOUTS_UNCHECKED)
        return 0;
    int64_t now = coarse_clock();
    if (now == scan->checked)
        return 0;
    scan->checked = now;
    if (interrupt_check(scan->error) < 0)
        return PCRE2_ERROR_CALLOUT;
    return now - scan->began > LINE_MILLISECONDS ? PCRE2_ERROR_MATCHLIMIT : 0;
}

int search_match(struct scan *scan, const pcre2_code *code, const char *bytes, size_t size, size_t from,
                 struct span *found)
{
    struct search_regex *regex = scan->regex;
    bool one_line = code == regex->line;
    size_t limit = one_line ? LINE_LIMIT + size * LINE_LIMIT_BYTE : LINES_LIMIT;
    pcre2_set_match_limit(regex->context, (uint32_t)limit);
    pcre2_set_callout(regex->context, look_at_clock, scan);
    if (one_line)
        scan->began = coarse_clock();
    int count = pcre2_match(code, (PCRE2_SPTR)bytes, size, from, 0, regex->data, regex->context);
    if (count >= 0) {
        const size_t *offsets = pcre2_get_ovector_pointer(regex->data);
        *found = (struct span){offsets[0], offsets[1]};
        return 1;
    }
    if (count == PCRE2_ERROR_CALLOUT || interrupt_check(scan->error) < 0)
        return -1;
    return count == PCRE2_ERROR_NOMATCH ? 0 : too_costly(scan, bytes + from, count);
}
