// SPDX-License-Identifier: Apache-2.0
// Rules of .gitignore files, see ignore.h.
#include "core/workspace/ignore.h"

#include "core/base/buffer.h"
#include "core/base/cleanup.h"
#include "core/text/glob.h"
#include "core/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_LINE = 4096, MOST_RULES = 10000 };

struct ignore_rule {
    char *start; // of paths: the directory with its slash, and what a pattern with a slash has before wildcards
    size_t start_size;
    struct glob *glob; // of the rest; NULL: there is none
    bool negated, directories_only;
    bool here; // the rest has no slash
};

static void rule_free(struct ignore_rule *rule)
{
    free(rule->start);
    glob_free(rule->glob);
}

// Blanks at the end count only after a backslash.
static size_t without_blanks(const char *line, size_t size)
{
    while (size > 0 && (line[size - 1] == '\r' || (line[size - 1] == ' ' && (size < 2 || line[size - 2] != '\\'))))
        size--;
    return size;
}

// The pattern for glob.h, with braces escaped: git gives them no meaning. Owned by the caller.
static char *glob_pattern(const char *pattern, size_t size)
{
    char *copy = malloc(2 * size + 1), *to = copy;
    for (size_t i = 0; copy && i < size; i++) {
        if (pattern[i] == '{' || pattern[i] == '}')
            *to++ = '\\';
        *to++ = pattern[i];
    }
    if (copy)
        *to = '\0';
    return copy;
}

// 1: *rule is filled; 0: the line holds no rule; -1: memory is out.
static int read_rule(const char *directory, const char *line, size_t size, struct ignore_rule *rule)
{
    size = without_blanks(line, size);
    *rule = (struct ignore_rule){0};
    if (size == 0 || size > LONGEST_LINE || *line == '#')
        return 0;
    rule->negated = *line == '!';
    line += rule->negated;
    size -= rule->negated;
    rule->directories_only = size > 0 && line[size - 1] == '/';
    size -= rule->directories_only;
    bool has_slash = size > 0 && *line == '/';
    line += has_slash;
    size -= has_slash;
    if (size == 0 || memchr(line, '\0', size))
        return 0;
    has_slash = has_slash || memchr(line, '/', size);
    // As in git, what comes after is a pattern of its own: the ** of a**/b is at its beginning, so ax/y/b matches too.
    size_t literal = 0;
    while (has_slash && literal < size && !strchr("*?[\\", line[literal]))
        literal++;
    if (asprintf(&rule->start, "%s%s%.*s", directory, *directory ? "/" : "", (int)literal, line) < 0)
        return -1;
    rule->start_size = strlen(rule->start);
    if (literal == size)
        return 1;
    cleanup_free char *pattern = glob_pattern(line + literal, size - literal);
    if (!pattern)
        return -1;
    // Two or more stars alone are all that is below.
    rule->here = has_slash && !strchr(pattern, '/') && (!pattern[1] || pattern[strspn(pattern, "*")]);
    rule->glob = glob_compile(pattern, GLOB_BYTES, NULL);
    return rule->glob ? 1 : 0;
}

static int add_rule(struct ignore *ignore, const struct ignore_rule *rule)
{
    struct ignore_rule *rules = array_grow(ignore->rules, ignore->count, sizeof *rules);
    if (!rules)
        return -1;
    ignore->rules = rules;
    rules[ignore->count++] = *rule;
    return 0;
}

int ignore_add(struct ignore *ignore, const char *directory, const char *text, size_t size)
{
    const char *end = text + size;
    text += text_mark(text, size); // is no part of the first rule
    for (const char *next; text < end && ignore->count < MOST_RULES; text = next) {
        const char *stop = text_line_end(text, end);
        struct ignore_rule rule;
        next = stop < end ? stop + 1 : end;
        int read = read_rule(directory, text, (size_t)(stop - text), &rule);
        if (read <= 0)
            rule_free(&rule);
        if (read < 0 || (read > 0 && add_rule(ignore, &rule) < 0))
            return -1;
    }
    return 0;
}

static bool applies(const struct ignore_rule *rule, const char *path, bool is_directory)
{
    if (strncmp(path, rule->start, rule->start_size) != 0)
        return false;
    const char *rest = path + rule->start_size;
    if ((rule->directories_only && !is_directory) || (rule->here && strchr(rest, '/')))
        return false;
    return rule->glob ? glob_match(rule->glob, rest) : !*rest;
}

// The last rule that applies decides.
bool ignore_matches(const struct ignore *ignore, const char *path, bool is_directory)
{
    for (size_t i = ignore->count; i > 0; i--)
        if (applies(&ignore->rules[i - 1], path, is_directory))
            return !ignore->rules[i - 1].negated;
    return false;
}

void ignore_free(struct ignore *ignore)
{
    for (size_t i = 0; i < ignore->count; i++)
        rule_free(&ignore->rules[i]);
    free(ignore->rules);
    *ignore = (struct ignore){0};
}
