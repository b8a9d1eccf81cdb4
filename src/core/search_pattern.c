// SPDX-License-Identifier: Apache-2.0
// Rewrites patterns for whole texts, see search_pattern.h. It knows the common part of the syntax and gives up on
// anything else, so that what it accepts is right.
#include "core/search_pattern.h"

#include <string.h>

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

// Copies so many bytes of the pattern.
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
    if (sees(r, "]") || sees(r, "-")) { // literal in this place, which need not be the first any more
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
