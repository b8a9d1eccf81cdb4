// SPDX-License-Identifier: Apache-2.0
// The form of "*** Begin Patch", which language models are taught, see patch_parse.h.
#include "core/edit/patch_parse.h"

#include "core/base/interrupt.h"

#include <stdlib.h>
#include <string.h>

static const char BEGIN[] = "*** Begin Patch", END[] = "*** End Patch", END_OF_FILE[] = "*** End of File",
                  ADD[] = "*** Add File:", DELETE[] = "*** Delete File:", UPDATE[] = "*** Update File:",
                  MOVE[] = "*** Move to:";

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

// The next line without blanks at its end.
static bool next_line(const struct patch_reader *reader, struct patch_line *line)
{
    if (!patch_header_line(reader, line))
        return false;
    while (line->size && is_blank(line->text[line->size - 1]))
        line->size--;
    return true;
}

static bool at_word(const struct patch_reader *reader, const char *word)
{
    struct patch_line line;
    return next_line(reader, &line) && line.size == strlen(word) && patch_starts(line, word);
}

static bool at_field(const struct patch_reader *reader, const char *field)
{
    struct patch_line line;
    return next_line(reader, &line) && patch_starts(line, field);
}

bool patch_at_begin(const struct patch_reader *reader)
{
    struct patch_reader after = *reader;
    if (!at_word(reader, BEGIN))
        return false;
    patch_advance(&after);
    patch_pass_blank(&after);
    return at_field(&after, ADD) || at_field(&after, DELETE) || at_field(&after, UPDATE);
}

// Reads the name after the field of the next line and moves past the line. The name is owned; NULL: *error says why.
static char *take_name(struct patch_reader *reader, const char *field, struct error *error)
{
    struct patch_line line;
    size_t at = strlen(field);
    next_line(reader, &line);
    while (at < line.size && is_blank(line.text[at]))
        at++;
    char *name = line.size > PATCH_MAX_NAME_LINE ? NULL : patch_name_whole(line.text + at, line.size - at);
    if (!name)
        patch_invalid(reader, error,
                      "no file name can be read here (empty, too long, with a NUL, or its quotes are wrong)");
    else
        patch_advance(reader);
    return name;
}

static struct patch_file *add_file(struct patch *patch, const struct patch_reader *reader, enum patch_action action,
                                   struct error *error)
{
    struct patch_file *file = patch_add_file(patch, error);
    if (file)
        *file = (struct patch_file){.action = action,
                                    .plain = true,
                                    .line = reader->line,
                                    .offset = (uint32_t)(reader->at - patch->diff),
                                    .first_hunk = patch->hunk_count};
    return file;
}

// Reads a new file: one hunk, in which all lines begin with '+'.
static int read_added(struct patch_reader *reader, struct patch *patch, struct error *error)
{
    struct patch_line line;
    struct patch_file *file = add_file(patch, reader, PATCH_CREATED, error);
    struct patch_hunk hunk = {.header = (uint32_t)(reader->at - patch->diff), .line = reader->line, .new_start = 1};
    next_line(reader, &line);
    hunk.header_size = (uint32_t)line.size;
    if (!file || !(file->new_name = take_name(reader, ADD, error)))
        return -1;
    hunk.body = (uint32_t)(reader->at - patch->diff);
    for (; patch_header_line(reader, &line) && patch_starts(line, "+"); hunk.new_count++)
        patch_advance(reader);
    if (patch_header_line(reader, &line) && patch_starts(line, "\\ ") && hunk.new_count)
        patch_advance(reader);
    hunk.body_end = (uint32_t)(reader->at - patch->diff);
    if (!hunk.new_count)
        return 0;
    struct patch_hunk *added = patch_add_hunk(patch, error);
    if (!added)
        return -1;
    *added = hunk;
    file->hunk_count = 1;
    return 0;
}

static int read_deleted(struct patch_reader *reader, struct patch *patch, struct error *error)
{
    struct patch_file *file = add_file(patch, reader, PATCH_DELETED, error);
    if (!file)
        return -1;
    file->whole = true;
    file->old_name = take_name(reader, DELETE, error);
    return file->old_name ? 0 : -1;
}

static bool at_hunk(struct patch_reader *reader)
{
    struct patch_line line;
    struct patch_reader after = *reader;
    patch_pass_blank(&after);
    if (!patch_header_line(&after, &line) || patch_starts(line, "*** "))
        return false;
    if (patch_starts(line, "@@"))
        *reader = after; // blank lines between hunks belong to none
    return true;
}

static int read_hunks(struct patch_reader *reader, struct patch *patch, struct patch_file *file, struct error *error)
{
    for (; at_hunk(reader); file->hunk_count++) {
        struct patch_hunk *hunk = patch_add_hunk(patch, error);
        if (!hunk || patch_read_bare_hunk(reader, patch->diff, true, hunk, error) < 0)
            return -1;
        file->tolerated |= PATCH_NO_NUMBERS;
        struct patch_reader after = *reader;
        patch_pass_blank(&after);
        if (!at_word(&after, END_OF_FILE))
            continue;
        hunk->at_end = true;
        *reader = after;
        patch_advance(reader);
    }
    return 0;
}

static int read_updated(struct patch_reader *reader, struct patch *patch, struct error *error)
{
    struct patch_file *file = add_file(patch, reader, PATCH_MODIFIED, error);
    if (!file || !(file->old_name = take_name(reader, UPDATE, error)))
        return -1;
    if (at_field(reader, MOVE)) {
        file->action = PATCH_RENAMED;
        file->from = file->old_name;
        file->old_name = NULL;
        if (!(file->to = take_name(reader, MOVE, error)))
            return -1;
    } else if (!(file->new_name = strdup(file->old_name))) {
        return error_set(error, "out_of_memory", 0, "not enough memory for the diff");
    }
    if (read_hunks(reader, patch, file, error) < 0)
        return -1;
    if (!file->hunk_count && !file->to)
        return patch_invalid(reader, error, "the file above is to be updated, but no change follows");
    return 0;
}

static int read_file(struct patch_reader *reader, struct patch *patch, struct error *error)
{
    if (at_field(reader, ADD))
        return read_added(reader, patch, error);
    if (at_field(reader, DELETE))
        return read_deleted(reader, patch, error);
    if (at_field(reader, UPDATE))
        return read_updated(reader, patch, error);
    return patch_invalid(reader, error,
                         "here '*** Add File: ', '*** Delete File: ', '*** Update File: ' or '*** End Patch' belongs; "
                         "each line of a new file begins with '+'");
}

int patch_read_begin(struct patch_reader *reader, struct patch *patch, struct error *error)
{
    struct patch_line line;
    patch->tolerated |= PATCH_BEGIN_PATCH;
    patch_advance(reader);
    for (patch_pass_blank(reader); !at_word(reader, END); patch_pass_blank(reader)) {
        if (!patch_peek(reader, &line))
            return patch_invalid(reader, error, "'*** Begin Patch' without '*** End Patch': the patch was cut off");
        if (read_file(reader, patch, error) < 0 || interrupt_check(error) < 0)
            return -1;
    }
    patch_advance(reader);
    return 0;
}
