// SPDX-License-Identifier: Apache-2.0
// Rewrites patterns for whole texts, see search_internal.h. It knows the common part of the syntax and gives up on
// anything else, so that what it accepts is right.
#include "core/search_internal.h"

#include <string.h>

enum { LITERAL_MIN = 3 };

struct rewriter {
    const char *at, *end;
    struct buffer *out;
    bool failed;
};

static void put(struct rewriter *r, const char *bytes, size_t size)
{
    if (buffer_append(r->out, bytes, size) < 0)
        r->failed = true;
}

static void put_string(struct rewriter *r, const char *text)
{
    put(r, text, strlen(text));
}

// Copies size bytes of the pattern.
static void copy(struct rewriter *r, size_t size)
{
    put(r, r->at, size);
    r->at += size;
}

static bool sees(const struct rewriter *r, const char *text)
{
    size_t size = strlen(text);
    return (size_t)(r->end - r->at) >= size && memcmp(r->at, text, size) == 0;
}

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// At a backslash outside a class.
static void rewrite_escape(struct rewriter *r)
{
    char c = r->end - r->at > 1 ? r->at[1] : '\0';
    char after = r->end - r->at > 2 ? r->at[2] : '\0';
    const char *instead = c == 's' ? "[^\\S\\n]" : c == 'W' ? "[^\\w\\n]" : c == 'D' ? "[^\\d\\n]" : NULL;
    if (instead) {
        put_string(r, instead);
        r->at += 2;
    } else if (is_one_of(c, "dwSbBhVtfea") || (!is_word(c) && !is_control(c))) {
        copy(r, 2);
    } else if (c >= '1' && c <= '9' && !(after >= '0' && after <= '9')) {
        copy(r, 2);
    } else {
        r->failed = true;
    }
}

// At an opening parenthesis.
static void rewrite_group(struct rewriter *r)
{
    static const char *const plain[] = {"(?:", "(?=", "(?!", "(?<", "(?>", "(?|", "(?P<", "(?'", "(?i)", "(?i:", NULL};
    if (sees(r, "(*")) {
        r->failed = true;
        return;
    }
    if (!sees(r, "(?")) {
        copy(r, 1);
        return;
    }
    for (size_t i = 0; plain[i]; i++) {
        if (sees(r, plain[i])) {
            copy(r, strlen(plain[i]));
            return;
        }
    }
    r->failed = true;
}

// At "[:" inside a class.
static void rewrite_posix_class(struct rewriter *r, bool negated)
{
    static const char *const without_newline[] = {"[:alnum:]", "[:alpha:]", "[:digit:]",  "[:lower:]",
                                                  "[:upper:]", "[:punct:]", "[:xdigit:]", "[:word:]",
                                                  "[:graph:]", "[:blank:]", "[:print:]",  NULL};
    for (size_t i = 0; without_newline[i]; i++) {
        if (sees(r, without_newline[i])) {
            copy(r, strlen(without_newline[i]));
            return;
        }
    }
    if (negated && sees(r, "[:space:]"))
        copy(r, strlen("[:space:]"));
    else
        r->failed = true;
}

// At a backslash inside a class.
static void rewrite_class_escape(struct rewriter *r, bool negated)
{
    char c = r->end - r->at > 1 ? r->at[1] : '\0';
    char after = r->end - r->at > 2 ? r->at[2] : '\0';
    bool is_range = after == '-';
    if (c == 's' && !negated) {
        put_string(r, "\\t\\x0b\\f\\r ");
        r->at += 2;
        r->failed |= is_range;
    } else if (is_one_of(c, "dwSh") || (!is_word(c) && !is_control(c)) || (is_one_of(c, "tfear") && !is_range)) {
        copy(r, 2);
    } else if (negated && is_one_of(c, "sWDn")) {
        copy(r, 2);
    } else {
        r->failed = true;
    }
}

// At an opening bracket.
static void rewrite_class(struct rewriter *r)
{
    bool negated = sees(r, "[^");
    copy(r, negated ? 2 : 1);
    if (negated)
        put_string(r, "\\n");
    if (sees(r, "]") || sees(r, "-")) { // literal here, but maybe no longer the first
        put_string(r, "\\");
        copy(r, 1);
    }
    while (r->at < r->end && *r->at != ']' && !r->failed) {
        if (*r->at == '\\')
            rewrite_class_escape(r, negated);
        else if (sees(r, "[:"))
            rewrite_posix_class(r, negated);
        else if (is_control(*r->at) || sees(r, "[.") || sees(r, "[="))
            r->failed = true;
        else
            copy(r, 1);
    }
    if (r->at < r->end)
        copy(r, 1);
    else
        r->failed = true;
}

bool search_pattern_for_lines(const char *pattern, size_t size, struct buffer *rewritten)
{
    struct rewriter r = {.at = pattern, .end = pattern + size, .out = rewritten};
    while (r.at < r.end && !r.failed) {
        if (*r.at == '\\')
            rewrite_escape(&r);
        else if (*r.at == '[')
            rewrite_class(&r);
        else if (*r.at == '(')
            rewrite_group(&r);
        else if (*r.at == '\n' || *r.at == '\r' || *r.at == '\0')
            r.failed = true;
        else
            copy(&r, 1);
    }
    return !r.failed;
}

// Moves past the bracket that ends the class at at.
static const char *class_end(const char *at, const char *end)
{
    at += at + 1 < end && at[1] == '^' ? 2 : 1;
    for (bool first = true; at < end && (first || *at != ']'); first = false) {
        if (*at == '\\')
            at += 2;
        else if (at + 1 < end && at[0] == '[' && at[1] == ':')
            at = (const char *)memchr(at, ']', (size_t)(end - at)) + 1;
        else
            at++;
    }
    return at + 1;
}

// Moves past the piece at at: a class, an escape, a byte, or braces with what is in them.
static const char *piece_end(const char *at, const char *end)
{
    const char *brace = *at == '{' ? memchr(at, '}', (size_t)(end - at)) : NULL;
    if (brace)
        return brace + 1;
    return *at == '[' ? class_end(at, end) : *at == '\\' ? at + 2 : at + 1;
}

// The byte that the piece stands for; NUL: it is not a single one, or what follows may make it optional.
static char literal_byte(const char *at, const char *next, const char *end)
{
    if (next < end && is_one_of(*next, "*?{"))
        return '\0';
    if (*at == '\\')
        return is_word(at[1]) ? '\0' : at[1];
    return is_one_of(*at, ".^$[()|*+?{") ? '\0' : *at;
}

bool search_pattern_literal(const char *pattern, size_t size, struct buffer *literal)
{
    const char *end = pattern + size, *next;
    char run[256];
    size_t length = 0, start = 0;
    int depth = 0;
    for (const char *at = pattern; at <= end; at = next) {
        next = at < end ? piece_end(at, end) : at + 1;
        char byte = at < end && depth == 0 ? literal_byte(at, next, end) : '\0';
        if (at < end && ((depth == 0 && *at == '|') || (end - at > 2 && memcmp(at, "(?i", 3) == 0)))
            return false;
        if (byte && length == 0)
            start = (size_t)(at - pattern);
        if (byte && length < sizeof run)
            run[length++] = byte;
        if (byte && !(next < end && *next == '+'))
            continue;
        if (start > 0 && length >= LITERAL_MIN && length > literal->size) {
            literal->size = 0;
            if (buffer_append(literal, run, length) < 0)
                return false;
        }
        length = 0;
        if (at < end)
            depth += (*at == '(') - (*at == ')');
    }
    return literal->size > 0;
}
