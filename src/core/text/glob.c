// SPDX-License-Identifier: Apache-2.0
// File name patterns, see glob.h. Braces are expanded here; PCRE2 converts each alternative to a regular expression
// that goes back to the last star only, so no pattern is slow.
#include "core/text/glob.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/base/buffer.h"
#include "core/base/cleanup.h"
#include "core/text/text.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

// EXPANSIONS_MAX: patterns that are made one from another until no braces are left in them.
enum { ALTERNATIVES_MAX = 1000, EXPANSIONS_MAX = 10000, PATTERN_MAX = 4096 };

struct alternative {
    pcre2_code *code;
    bool whole_path; // it has a slash
};

struct glob {
    struct alternative *alternatives; // owned
    size_t count;
    size_t expanded; // patterns whose braces were looked at
    pcre2_match_data *data;
    enum glob_unit unit;
};

static int malformed(struct error *error, const char *pattern, const char *reason)
{
    return error_set(error, "invalid_glob", 0, "the glob \"%s\" is malformed: %s", pattern, reason);
}

// PCRE2 takes ** between other characters for any directories too; here it is a star. More stars are two, as in git.
static int append_stars(struct buffer *out, const char *pattern, size_t at, size_t count)
{
    char after = pattern[at + count];
    bool is_component = count >= 2 && (at == 0 || pattern[at - 1] == '/') && (after == '/' || after == '\0');
    return buffer_append(out, "**", is_component ? 2 : 1);
}

static int simplify(const char *pattern, struct buffer *out)
{
    for (size_t at = 0, size; pattern[at]; at += size) {
        size = pattern[at] == '*' ? strspn(pattern + at, "*") : pattern[at] == '\\' && pattern[at + 1] ? 2 : 1;
        int failed = pattern[at] == '*' ? append_stars(out, pattern, at, size) : buffer_append(out, pattern + at, size);
        if (failed)
            return -1;
    }
    return 0;
}

static pcre2_code *compile(const struct glob *glob, const char *pattern, const char *whole, struct error *error)
{
    const bool utf = glob->unit == GLOB_CHARACTERS;
    cleanup_buffer struct buffer simple = {0};
    PCRE2_UCHAR *expression = NULL, reason[128];
    PCRE2_SIZE size = 0;
    int number;
    if (buffer_reserve(&simple, 1) < 0 || simplify(pattern, &simple) < 0) // never NULL: an alternative may be empty
        return error_memory(error, "cannot read a glob"), NULL;
    number = pcre2_pattern_convert((PCRE2_SPTR)simple.data, simple.size,
                                   PCRE2_CONVERT_GLOB | (utf ? PCRE2_CONVERT_UTF : 0), &expression, &size, NULL);
    pcre2_code *code = number == 0 ? pcre2_compile(expression, size, utf ? PCRE2_UTF : 0, &number, &size, NULL) : NULL;
    pcre2_converted_pattern_free(expression);
    if (!code && pcre2_get_error_message(number, reason, sizeof reason) > 0)
        malformed(error, whole, (const char *)reason);
    return code;
}

static int add_alternative(struct glob *glob, const char *pattern, const char *whole, struct error *error)
{
    bool whole_path = strchr(pattern, '/');
    while (strncmp(pattern, "./", 2) == 0) // a path has none
        pattern += 2;
    if (glob->count == ALTERNATIVES_MAX)
        return malformed(error, whole, "its braces make more than 1000 alternatives");
    struct alternative *alternatives = array_grow(glob->alternatives, glob->count, sizeof *alternatives);
    if (!alternatives)
        return error_memory(error, "cannot read a glob");
    glob->alternatives = alternatives;
    pcre2_code *code = compile(glob, pattern, whole, error);
    if (!code)
        return -1;
    alternatives[glob->count++] = (struct alternative){code, whole_path};
    return 0;
}

// The end of the set that begins at pattern ("[..."), after its ']'. NULL: it has none. A ']' that comes first, also
// after the '!' of "[!]a]", is a character of the set.
static const char *set_end(const char *pattern)
{
    const char *at = pattern + 1;
    if (*at == '!' || *at == '^')
        at++;
    if (*at == ']')
        at++;
    for (; *at && *at != '/' && *at != ']'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at == ']' ? at + 1 : NULL;
}

// Moves past the next piece of the pattern: an escape, a set, or a byte. PCRE2 refuses those that are malformed.
static const char *piece_end(const char *pattern)
{
    const char *end = *pattern == '[' ? set_end(pattern) : NULL;
    return end ? end : pattern + (*pattern == '\\' && pattern[1] ? 2 : 1);
}

// The first of these bytes that stands outside groups, or the end.
static const char *find_outside(const char *pattern, const char *bytes)
{
    for (int depth = 0; *pattern && (depth > 0 || !strchr(bytes, *pattern)); pattern = piece_end(pattern))
        depth += (*pattern == '{') - (*pattern == '}');
    return pattern;
}

static int expand(struct glob *glob, const char *pattern, const char *whole, struct error *error)
{
    if (glob->expanded++ == EXPANSIONS_MAX)
        return malformed(error, whole, "its braces are too many");
    const char *open = find_outside(pattern, "{}"), *end = open;
    if (*open == '}')
        return malformed(error, whole, "a } has no { before it");
    if (*open == '\0')
        return add_alternative(glob, pattern, whole, error);
    const char *close = find_outside(open + 1, "}");
    if (*close == '\0')
        return malformed(error, whole, "a { has no } after it");
    while (end < close) {
        cleanup_buffer struct buffer plain = {0};
        const char *start = end + 1;
        end = find_outside(start, ",}");
        if (buffer_append(&plain, pattern, (size_t)(open - pattern)) < 0 ||
            buffer_append(&plain, start, (size_t)(end - start)) < 0 ||
            buffer_append(&plain, close + 1, strlen(close)) < 0)
            return error_memory(error, "cannot read a glob");
        if (expand(glob, plain.data, whole, error) < 0)
            return -1;
    }
    return 0;
}

static int check_whole(const char *pattern, struct error *error)
{
    size_t size = strlen(pattern);
    if (size == 0)
        return malformed(error, pattern, "it is empty");
    if (size > PATTERN_MAX)
        return error_set(error, "invalid_glob", 0, "the glob is longer than %d bytes", PATTERN_MAX);
    if (pattern[0] == '/')
        return malformed(error, pattern, "it begins with a slash; paths are relative to the workspace");
    if (pattern[size - 1] == '/')
        return malformed(error, pattern,
                         "it ends in a slash; only files are matched, end it in /** for all below a directory");
    return 0;
}

// Where characters count, what is not UTF-8 becomes U+FFFD in pattern and path, so that such a byte counts as one.
struct glob *glob_compile(const char *pattern, enum glob_unit unit, struct error *error)
{
    cleanup_buffer struct buffer repaired = {0};
    const char *expanded = pattern;
    if (check_whole(pattern, error) < 0)
        return NULL;
    struct glob *glob = calloc(1, sizeof *glob);
    if (!glob || !(glob->data = pcre2_match_data_create(1, NULL)) ||
        (unit == GLOB_CHARACTERS && text_repair(pattern, strlen(pattern) + 1, &repaired) < 0)) {
        glob_free(glob);
        return error_memory(error, "cannot read a glob"), NULL;
    }
    glob->unit = unit;
    if (unit == GLOB_CHARACTERS)
        expanded = repaired.data;
    if (expand(glob, expanded, pattern, error) < 0) {
        glob_free(glob);
        return NULL;
    }
    return glob;
}

static bool match_any(const struct glob *glob, const char *path)
{
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; i < glob->count; i++) {
        const char *subject = glob->alternatives[i].whole_path || !slash ? path : slash + 1;
        if (pcre2_match(glob->alternatives[i].code, (PCRE2_SPTR)subject, strlen(subject), 0, PCRE2_NO_UTF_CHECK,
                        glob->data, NULL) >= 0)
            return true;
    }
    return false;
}

bool glob_match(const struct glob *glob, const char *path)
{
    cleanup_buffer struct buffer repaired = {0};
    if (glob->unit == GLOB_BYTES || text_is_utf8(path, strlen(path)))
        return match_any(glob, path);
    return text_repair(path, strlen(path) + 1, &repaired) == 0 && match_any(glob, repaired.data);
}

void glob_free(struct glob *glob)
{
    for (size_t i = 0; glob && i < glob->count; i++)
        pcre2_code_free(glob->alternatives[i].code);
    if (glob) {
        pcre2_match_data_free(glob->data);
        free(glob->alternatives);
    }
    free(glob);
}
