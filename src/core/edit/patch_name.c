// SPDX-License-Identifier: Apache-2.0
// Reads names and dates in the headers of a diff, see patch_parse.h.
#include "core/edit/patch_parse.h"

#include <stdlib.h>
#include <string.h>

static char *copy_name(const char *text, size_t size)
{
    if (!size || memchr(text, 0, size))
        return NULL;
    return strndup(text, size);
}

static int octal_escape(const char *text, size_t size)
{
    if (size < 3 || text[0] < '0' || text[0] > '3' || text[1] < '0' || text[1] > '7' || text[2] < '0' || text[2] > '7')
        return -1;
    return (text[0] - '0') << 6 | (text[1] - '0') << 3 | (text[2] - '0');
}

// The byte that an escape stands for, and how long the escape is after its backslash; -1: it is not one.
static int unescape(const char *text, size_t size, size_t *used)
{
    static const char letters[] = "abtnvfr\"\\", bytes[] = "\a\b\t\n\v\f\r\"\\";
    const char *letter = size ? memchr(letters, text[0], sizeof letters - 1) : NULL;
    *used = letter ? 1 : 3;
    return letter ? bytes[letter - letters] : octal_escape(text, size);
}

// The C-quoted string at the start of text; *used is its length. A NUL in it makes it invalid.
static char *quoted(const char *text, size_t size, size_t *used)
{
    char *name = malloc(size + 1);
    size_t length = 0, at = 1;
    while (name && at < size && text[at] != '"') {
        int byte = (unsigned char)text[at++];
        size_t escape = 0;
        if (byte == '\\')
            byte = unescape(text + at, size - at, &escape);
        if (byte <= 0)
            break;
        at += escape;
        name[length++] = (char)byte;
    }
    if (!name || at >= size || text[at] != '"' || !length) {
        free(name);
        return NULL;
    }
    name[length] = 0;
    *used = at + 1;
    return name;
}

char *patch_name_whole(const char *text, size_t size)
{
    size_t used;
    if (!size || text[0] != '"')
        return copy_name(text, size);
    char *name = quoted(text, size, &used);
    if (name && used == size)
        return name;
    free(name);
    return NULL;
}

// Whether text begins with the pattern: 'd' is a digit, '?' a sign, all else itself.
static bool matches(const char *text, size_t size, const char *pattern)
{
    for (size_t i = 0; pattern[i]; i++) {
        if (i >= size)
            return false;
        bool fits = pattern[i] == 'd'   ? text[i] >= '0' && text[i] <= '9'
                    : pattern[i] == '?' ? text[i] == '+' || text[i] == '-'
                                        : text[i] == pattern[i];
        if (!fits)
            return false;
    }
    return true;
}

static int two_digits(const char *text)
{
    return (text[0] - '0') * 10 + text[1] - '0';
}

struct date {
    const char *text; // "2005-04-12 02:14:06"
    bool fraction;    // more than whole seconds
    int zone;         // minutes east of UTC
};

// Whether all of text is a date: 2005-04-12 02:14:06[.000] [-07:00].
static bool read_date(const char *text, size_t size, struct date *date)
{
    static const char plain[] = "dddd-dd-dd dd:dd:dd";
    size_t at = sizeof plain - 1;
    *date = (struct date){text, false, 0};
    if (!matches(text, size, plain))
        return false;
    if (at < size && text[at] == '.')
        for (at++; at < size && text[at] >= '0' && text[at] <= '9'; at++)
            date->fraction |= text[at] != '0';
    if (at == size)
        return true;
    bool colon = matches(text + at, size - at, " ?dd:dd");
    if (!colon && !matches(text + at, size - at, " ?dddd"))
        return false;
    date->zone = two_digits(text + at + 2) * 60 + two_digits(text + at + 4 + colon);
    if (text[at + 1] == '-')
        date->zone = -date->zone;
    return at + 6 + colon == size;
}

// Length of the text before a date at its end, and before the blanks between; size if there is no date.
static size_t before_date(const char *text, size_t size, struct date *date)
{
    for (size_t i = 0; i < size; i++) {
        if ((text[i] != ' ' && text[i] != '\t') || !read_date(text + i + 1, size - i - 1, date))
            continue;
        while (i && (text[i - 1] == ' ' || text[i - 1] == '\t'))
            i--;
        return i;
    }
    return size;
}

char *patch_name_dated(const char *text, size_t size)
{
    size_t used;
    struct date date;
    if (size && text[0] == '"')
        return quoted(text, size, &used);
    size_t length = before_date(text, size, &date);
    const char *tab = length == size ? memchr(text, '\t', size) : NULL;
    return copy_name(text, tab ? (size_t)(tab - text) : length);
}

bool patch_name_is_epoch(const char *text, size_t size)
{
    struct date date;
    if (before_date(text, size, &date) == size || date.fraction)
        return false;
    bool last = memcmp(date.text, "1969-12-31", 10) == 0;
    if ((!last && memcmp(date.text, "1970-01-01", 10) != 0) || two_digits(date.text + 17) != 0)
        return false;
    return two_digits(date.text + 11) * 60 + two_digits(date.text + 14) - (last ? 24 * 60 : 0) == date.zone;
}

// "a/x b/x": splits at the blank where both names are the same below their first directory. From blank to blank the
// first part grows and the second shrinks, so their sizes agree at most once: one pass is enough.
static size_t split_below_prefix(const char *text, size_t size)
{
    const char *slash = memchr(text, '/', size), *end = text + size, *other = slash;
    for (const char *blank = slash; blank && (blank = memchr(blank, ' ', (size_t)(end - blank))); blank++) {
        if (other < blank)
            other = memchr(blank, '/', (size_t)(end - blank));
        if (!other)
            return 0;
        if (blank - slash < end - other)
            continue;
        bool same = blank - slash == end - other && memcmp(slash, other, (size_t)(end - other)) == 0;
        return same ? (size_t)(blank - text) : 0;
    }
    return 0;
}

// "x x": splits names without a prefix.
static size_t split_in_half(const char *text, size_t size)
{
    size_t half = size / 2;
    return size % 2 && text[half] == ' ' && memcmp(text, text + half + 1, half) == 0 ? half : 0;
}

// Splits at a quote, if one of the names is quoted.
static size_t split_at_quote(const char *text, size_t size)
{
    size_t used = 0;
    if (text[0] == '"') {
        free(quoted(text, size, &used));
        return used && used + 1 < size && text[used] == ' ' ? used : 0;
    }
    for (size_t i = 1; i + 1 < size; i++)
        if (text[i] == ' ' && text[i + 1] == '"')
            return i;
    return 0;
}

// Splits "/dev/null b/x" and the reverse.
static size_t split_at_null(const char *text, size_t size)
{
    static const char null[] = "/dev/null";
    size_t length = sizeof null - 1;
    if (size > length + 1 && memcmp(text, "/dev/null ", length + 1) == 0)
        return length;
    if (size > length + 1 && memcmp(text + size - length - 1, " /dev/null", length + 1) == 0)
        return size - length - 1;
    return 0;
}

void patch_name_pair(const char *text, size_t size, char **old_name, char **new_name)
{
    static size_t (*const ways[])(const char *, size_t) = {split_at_quote, split_at_null, split_below_prefix,
                                                           split_in_half};
    size_t split = 0;
    for (size_t i = 0; size && !split && i < sizeof ways / sizeof *ways; i++)
        split = ways[i](text, size);
    *old_name = split ? patch_name_whole(text, split) : NULL;
    *new_name = *old_name ? patch_name_whole(text + split + 1, size - split - 1) : NULL;
    if (*new_name)
        return;
    free(*old_name);
    *old_name = NULL;
}

bool patch_name_same(const char *one, const char *other)
{
    const char *slash = strchr(one, '/'), *other_slash = strchr(other, '/');
    return strcmp(one, other) == 0 || (slash && other_slash && strcmp(slash, other_slash) == 0);
}

bool patch_name_agrees(const char *written, const char *plain)
{
    size_t size = strlen(written), wanted = strlen(plain);
    if (size < wanted || strcmp(written + size - wanted, plain) != 0)
        return false;
    return size == wanted || written[size - wanted - 1] == '/';
}
