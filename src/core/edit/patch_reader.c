// SPDX-License-Identifier: Apache-2.0
// Reads a diff line by line, see patch_parse.h.
#include "core/edit/patch_parse.h"
#include "core/text/text.h"

#include <string.h>

bool patch_peek(const struct patch_reader *reader, struct patch_line *line)
{
    size_t left = (size_t)(reader->end - reader->at);
    if (!left)
        return false;
    const char *newline = text_find_byte(reader->at, left, '\n');
    *line = (struct patch_line){reader->at, newline ? (size_t)(newline - reader->at) : left};
    return true;
}

bool patch_header_line(const struct patch_reader *reader, struct patch_line *line)
{
    if (!patch_peek(reader, line))
        return false;
    if (line->size && line->text[line->size - 1] == '\r')
        line->size--;
    return true;
}

bool patch_take(struct patch_reader *reader, struct patch_line *line)
{
    if (!patch_peek(reader, line))
        return false;
    reader->at = line->text + line->size;
    reader->at += reader->at < reader->end;
    reader->line++;
    return true;
}

void patch_advance(struct patch_reader *reader)
{
    const char *newline = text_find_byte(reader->at, (size_t)(reader->end - reader->at), '\n');
    reader->at = newline ? newline + 1 : reader->end;
    reader->line++;
}

bool patch_starts(struct patch_line line, const char *prefix)
{
    size_t size = strlen(prefix);
    return line.size >= size && memcmp(line.text, prefix, size) == 0;
}

static bool next_starts(struct patch_reader reader, const char *prefix)
{
    struct patch_line line;
    patch_advance(&reader);
    return patch_header_line(&reader, &line) && patch_starts(line, prefix);
}

bool patch_at_names(const struct patch_reader *reader)
{
    struct patch_line line;
    return patch_header_line(reader, &line) && patch_starts(line, "--- ") && next_starts(*reader, "+++ ");
}

// "-- " ends a mail. What follows, often a version, does not belong to a hunk.
static bool at_signature(const struct patch_reader *reader)
{
    struct patch_reader after = *reader;
    struct patch_line line;
    if (!patch_header_line(reader, &line) || !(line.size == 2 || line.size == 3) || !patch_starts(line, "--") ||
        (line.size == 3 && line.text[2] != ' '))
        return false;
    patch_advance(&after);
    return !patch_header_line(&after, &line) || !line.size || !memchr(" +-@\\", line.text[0], 5);
}

bool patch_at_body(const struct patch_reader *reader)
{
    struct patch_line line;
    if (!patch_peek(reader, &line) || !line.size)
        return false;
    return line.text[0] == ' ' || line.text[0] == '+' ||
           (line.text[0] == '-' && !patch_at_names(reader) && !at_signature(reader));
}

bool patch_at_separator(const struct patch_reader *reader)
{
    static const char *const starts[] = {"diff ",         "Index: ", "====",
                                         "From ",         "commit ", "Only in ",
                                         "Binary files ", "```",     "Property changes on",
                                         "*** End Patch"};
    struct patch_line line;
    if (!patch_header_line(reader, &line))
        return true;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (patch_starts(line, starts[i]))
            return true;
    return patch_at_names(reader) || at_signature(reader);
}

void patch_pass_blank(struct patch_reader *reader)
{
    struct patch_line line;
    for (; patch_header_line(reader, &line); patch_advance(reader))
        for (size_t i = 0; i < line.size; i++)
            if (line.text[i] != ' ' && line.text[i] != '\t')
                return;
}

int patch_invalid(const struct patch_reader *reader, struct error *error, const char *message)
{
    return error_set(error, "invalid_patch", 0, "line %u of the diff: %s", reader->line, message);
}
