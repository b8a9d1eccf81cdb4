// SPDX-License-Identifier: Apache-2.0
// File name patterns, see glob.h. Braces are expanded when the pattern is read. What is left has at most one place to
// go back to, in a name (the last *) and in a path (the last **), so no pattern is slow.
#include "core/glob.h"

#include "core/buffer.h"
#include "core/cleanup.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALTERNATIVES_MAX = 1000, PATTERN_MAX = 4096 };

struct glob {
    struct buffer alternatives; // patterns without braces, NUL-terminated
    size_t count;
};

// One character of UTF-8 and its size. A byte that does not begin one counts as a character beyond all others.
static uint32_t character(const char *text, size_t *size)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = bytes[0] < 0x80 ? 1 : bytes[0] < 0xc2 ? 0 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
    uint32_t value = length == 1 ? bytes[0] : bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            length = 0;
        else
            value = value << 6 | (bytes[i] & 0x3f);
    }
    *size = length ? length : 1;
    return length ? value : 0x110000u + bytes[0];
}

// The end of the set that begins at pattern ("[..."), after its ']'. NULL: it has none.
static const char *set_end(const char *pattern)
{
    pattern += pattern[1] == '!' || pattern[1] == '^' ? 2 : 1;
    for (bool first = true; *pattern && *pattern != '/'; first = false, pattern++) {
        if (*pattern == ']' && !first)
            return pattern + 1;
        if (*pattern == '\\' && *++pattern == '\0')
            break;
    }
    return NULL;
}

static uint32_t set_member(const char **set)
{
    size_t size;
    if (**set == '\\')
        ++*set;
    uint32_t value = character(*set, &size);
    *set += size;
    return value;
}

// Whether value is in the set that begins at set. *backwards becomes true if a range in it runs backwards.
static bool set_holds(const char *set, uint32_t value, bool *backwards)
{
    const char *end = set_end(set) - 1;
    bool negated = set[1] == '!' || set[1] == '^', found = false;
    for (set += negated ? 2 : 1; set < end;) {
        uint32_t low = set_member(&set), high = low;
        if (*set == '-' && set + 1 < end) {
            set++;
            high = set_member(&set);
        }
        *backwards |= high < low;
        found |= low <= value && value <= high;
    }
    return found != negated;
}

static bool match_one(const char **pattern, const char **name)
{
    size_t size, wanted;
    uint32_t value = character(*name, &size);
    const char *next = *pattern;
    bool backwards = false, same;
    switch (*next) {
    case '?':
        same = true;
        next++;
        break;
    case '[':
        same = set_holds(next, value, &backwards);
        next = set_end(next);
        break;
    case '\\':
        next++;
        // fall through
    default:
        same = character(next, &wanted) == value;
        next += wanted;
    }
    if (same) {
        *pattern = next;
        *name += size;
    }
    return same;
}

static bool at_end(const char *text)
{
    return *text == '\0' || *text == '/';
}

// Matches one component: pattern and name end at a slash or at their end.
static bool match_name(const char *pattern, const char *name)
{
    const char *star = NULL, *retry = NULL;
    for (;;) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (at_end(name)) {
            return at_end(pattern);
        } else if (at_end(pattern) || !match_one(&pattern, &name)) {
            if (!star)
                return false;
            size_t size;
            character(retry, &size);
            name = retry += size;
            pattern = star;
        }
    }
}

// Moves past the slash that ends this component, or to the end of text.
static const char *next_component(const char *text)
{
    text += strcspn(text, "/");
    return *text ? text + 1 : text;
}

static const char *next_pattern(const char *pattern)
{
    while (!at_end(pattern))
        pattern = *pattern == '[' ? set_end(pattern) : pattern + (*pattern == '\\' ? 2 : 1);
    return *pattern ? pattern + 1 : pattern;
}

static bool is_any_directories(const char *pattern)
{
    return pattern[0] == '*' && pattern[1] == '*' && at_end(pattern + 2);
}

static bool match_path(const char *pattern, const char *path)
{
    const char *stars = NULL, *retry = NULL;
    for (;;) {
        if (is_any_directories(pattern) && *path) {
            stars = pattern = next_pattern(pattern);
            retry = path;
            if (!*pattern)
                return true;
        } else if (!*pattern && !*path) {
            return true;
        } else if (*pattern && *path && match_name(pattern, path)) {
            pattern = next_pattern(pattern);
            path = next_component(path);
        } else {
            if (!stars || !*path)
                return false;
            path = retry = next_component(retry);
            pattern = stars;
        }
    }
}

bool glob_match(const struct glob *glob, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *end = glob->alternatives.data + glob->alternatives.size;
    for (const char *pattern = glob->alternatives.data; pattern < end; pattern += strlen(pattern) + 1) {
        bool same = strchr(pattern, '/') ? match_path(pattern, path) : match_name(pattern, name);
        if (same)
            return true;
    }
    return false;
}

static int out_of_memory(struct error *error)
{
    return error_set(error, "out_of_memory", 0, "out of memory");
}

static int malformed(struct error *error, const char *pattern, const char *reason)
{
    return error_set(error, "invalid_glob", 0, "the glob \"%s\" is malformed: %s", pattern, reason);
}

// Moves past the next piece of the pattern: an escape, a set, or a byte. NULL: it is malformed.
static const char *piece_end(const char *pattern, const char *whole, struct error *error)
{
    const char *end = pattern + 1;
    bool backwards = false;
    if (*pattern == '\\' && !*end++)
        return malformed(error, whole, "it ends in a backslash"), NULL;
    if (*pattern != '[')
        return end;
    end = set_end(pattern);
    if (!end)
        return malformed(error, whole, "a [ has no ] in the same name"), NULL;
    set_holds(pattern, 0, &backwards);
    if (backwards)
        return malformed(error, whole, "a range in [ ] runs backwards"), NULL;
    return end;
}

// Finds the first group, from its '{' (open; NULL: there is none) to its '}' (close). Reads on to there, or to the end,
// and so finds what is malformed.
static int find_group(const char *pattern, const char *whole, const char **open, const char **close,
                      struct error *error)
{
    int depth = 0;
    *open = NULL;
    while (*pattern) {
        if (*pattern == '{' && depth++ == 0)
            *open = pattern;
        if (*pattern == '}' && depth == 0)
            return malformed(error, whole, "a } has no { before it");
        if (*pattern == '}' && --depth == 0)
            break;
        if (!(pattern = piece_end(pattern, whole, error)))
            return -1;
    }
    if (depth > 0)
        return malformed(error, whole, "a { has no } after it");
    *close = pattern;
    return 0;
}

static int expand(struct glob *glob, const char *pattern, const char *whole, struct error *error);

// The end of the alternative that begins at start: its ',' or close.
static const char *alternative_end(const char *start, const char *close, const char *whole, struct error *error)
{
    int depth = 0;
    while (start < close && (*start != ',' || depth > 0)) {
        depth += (*start == '{') - (*start == '}');
        start = piece_end(start, whole, error);
    }
    return start;
}

static int expand_group(struct glob *glob, const char *pattern, const char *open, const char *close, const char *whole,
                        struct error *error)
{
    for (const char *start = open + 1, *end; start <= close; start = end + 1) {
        cleanup_buffer struct buffer plain = {0};
        end = alternative_end(start, close, whole, error);
        if (buffer_append(&plain, pattern, (size_t)(open - pattern)) < 0 ||
            buffer_append(&plain, start, (size_t)(end - start)) < 0 ||
            buffer_append(&plain, close + 1, strlen(close)) < 0)
            return out_of_memory(error);
        if (expand(glob, plain.data, whole, error) < 0)
            return -1;
    }
    return 0;
}

static int expand(struct glob *glob, const char *pattern, const char *whole, struct error *error)
{
    const char *open = NULL, *close = NULL;
    if (find_group(pattern, whole, &open, &close, error) < 0)
        return -1;
    if (open)
        return expand_group(glob, pattern, open, close, whole, error);
    if (glob->count++ == ALTERNATIVES_MAX)
        return malformed(error, whole, "its braces make more than 1000 alternatives");
    return buffer_append(&glob->alternatives, pattern, strlen(pattern) + 1) < 0 ? out_of_memory(error) : 0;
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

struct glob *glob_compile(const char *pattern, struct error *error)
{
    if (check_whole(pattern, error) < 0)
        return NULL;
    struct glob *glob = calloc(1, sizeof *glob);
    if (!glob)
        return out_of_memory(error), NULL;
    if (expand(glob, pattern, pattern, error) < 0) {
        glob_free(glob);
        return NULL;
    }
    return glob;
}

void glob_free(struct glob *glob)
{
    if (glob)
        buffer_free(&glob->alternatives);
    free(glob);
}
