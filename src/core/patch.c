// SPDX-License-Identifier: Apache-2.0
// Parsing a unified diff: from file to file and from hunk to hunk, see patch.h.
#include "core/patch.h"

#include "core/interrupt.h"
#include "core/patch_header.h"
#include "core/patch_hunk.h"

#include <stdlib.h>
#include <string.h>

// Makes room for one more at count, a power of two at a time. Returns the array, or NULL (the old one is kept).
static void *grow(void *array, uint32_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    return realloc(array, (count ? (size_t)count * 2 : 1) * size);
}

static struct patch_file *add_file(struct patch *patch, struct error *error)
{
    if (patch->file_count == PATCH_MAX_FILES) {
        error_set(error, "too_large", 0, "the diff is of more than %d files", PATCH_MAX_FILES);
        return NULL;
    }
    struct patch_file *files = grow(patch->files, patch->file_count, sizeof *files);
    if (!files) {
        error_set(error, "out_of_memory", 0, "not enough memory for the diff");
        return NULL;
    }
    patch->files = files;
    files[patch->file_count] = (struct patch_file){0};
    return &files[patch->file_count++];
}

static struct patch_hunk *add_hunk(struct patch *patch, struct error *error)
{
    if (patch->hunk_count == PATCH_MAX_HUNKS) {
        error_set(error, "too_large", 0, "the diff has more than %d hunks", PATCH_MAX_HUNKS);
        return NULL;
    }
    struct patch_hunk *hunks = grow(patch->hunks, patch->hunk_count, sizeof *hunks);
    if (!hunks) {
        error_set(error, "out_of_memory", 0, "not enough memory for the diff");
        return NULL;
    }
    patch->hunks = hunks;
    return &hunks[patch->hunk_count++];
}

// What stands between the last hunk of a file and the next file: blank lines and words, but nothing that may be a piece
// of a hunk, for then a change would be lost.
static int pass_tail(struct patch_reader *reader, struct error *error)
{
    struct patch_line line;
    while (!patch_at_separator(reader)) {
        patch_header_line(reader, &line);
        if (patch_at_body(reader) || patch_starts(line, "@@"))
            return patch_invalid(reader, error, "this looks like a part of a hunk, but what stands above it does not");
        if (line.size && line.text[0] == '\\')
            return patch_invalid(reader, error, "'\\ No newline' belongs right below a line of a hunk");
        patch_advance(reader);
    }
    return 0;
}

static int read_hunks(struct patch_reader *reader, struct patch *patch, struct patch_file *file, struct error *error)
{
    struct patch_line line;
    uint64_t old = 0, new = 0;
    file->first_hunk = patch->hunk_count;
    for (; patch_header_line(reader, &line) && patch_starts(line, "@@"); file->hunk_count++) {
        struct patch_hunk *hunk = add_hunk(patch, error);
        if (!hunk || patch_read_hunk(reader, patch->diff, hunk, error) < 0)
            return -1;
        old += hunk->old_count;
        new += hunk->new_count;
    }
    if (!file->hunk_count && !file->git)
        return patch_invalid(reader, error,
                             "after '---' and '+++' a hunk must begin, with '@@ -LINE,COUNT +LINE,COUNT @@'");
    if (file->action == PATCH_CREATED && old)
        return patch_invalid(reader, error, "the new file above takes lines from an old one");
    if (file->action == PATCH_DELETED && new)
        return patch_invalid(reader, error, "the deleted file above still has lines");
    if (file->action == PATCH_MODIFIED && !file->hunk_count && file->new_mode && file->old_mode != file->new_mode)
        file->action = PATCH_MODE_CHANGED;
    file->may_create = !file->git && file->action == PATCH_MODIFIED && file->hunk_count == 1 && !old;
    return file->hunk_count ? pass_tail(reader, error) : 0;
}

static int read_file(struct patch_reader *reader, struct patch *patch, bool git, struct error *error)
{
    struct patch_file *file = add_file(patch, error);
    if (!file)
        return -1;
    int status = git ? patch_read_git_header(reader, file, error) : patch_read_names(reader, file, error);
    return status < 0 ? -1 : read_hunks(reader, patch, file, error);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Whether a line is a command of ed or of a normal diff: "3,5c4". *operation is its letter.
static bool is_command(struct patch_line line, char *operation)
{
    size_t at = 0;
    while (at < line.size && (is_digit(line.text[at]) || (at && line.text[at] == ',')))
        at++;
    if (!at || at == line.size || !memchr("acd", line.text[at], 3))
        return false;
    *operation = line.text[at++];
    bool ed = at == line.size;
    while (at < line.size && (is_digit(line.text[at]) || line.text[at] == ','))
        at++;
    if (at == line.size && !ed)
        *operation = 'n';
    return at == line.size;
}

enum kind { KIND_PROSE, KIND_ED };

// Looks at a line outside any file. -1 for what is meant to change files but is no unified diff.
static int look_at_prose(const struct patch_reader *reader, enum kind *kind, struct error *error)
{
    struct patch_line line;
    struct patch_reader after = *reader;
    char operation;
    patch_header_line(reader, &line);
    if (patch_starts(line, "@@ -"))
        return patch_invalid(reader, error, "a hunk without '---' and '+++' before it: which file is it for?");
    if (patch_starts(line, "***************"))
        return patch_invalid(reader, error, "a context diff is not a unified diff; use diff -u");
    if (patch_starts(line, "diff --cc ") || patch_starts(line, "diff --combined "))
        return patch_invalid(reader, error, "a combined diff (of a merge) is not a unified diff");
    if (patch_starts(line, "GIT binary patch") || (patch_starts(line, "Binary files ") && line.size > 21))
        return patch_refuse_binary(reader, error);
    if (!is_command(line, &operation))
        return 0;
    patch_advance(&after);
    if (operation != 'n')
        *kind = KIND_ED;
    if (patch_header_line(&after, &line) && (patch_starts(line, "< ") || patch_starts(line, "> ")))
        return patch_invalid(reader, error, "a normal diff is not a unified diff; use diff -u");
    return 0;
}

static int nothing_found(enum kind kind, struct error *error)
{
    if (kind == KIND_ED)
        return error_set(error, "invalid_patch", 0, "an ed script is not a unified diff; it is never run");
    return error_set(error, "invalid_patch", 0,
                     "no change found: a unified diff has lines '--- a/FILE', '+++ b/FILE' and '@@ -1,3 +1,4 @@'");
}

int patch_parse(const char *diff, size_t size, struct patch *patch, struct error *error)
{
    struct patch_reader reader = {diff, diff + size, 1};
    struct patch_line line;
    enum kind kind = KIND_PROSE;
    *patch = (struct patch){.diff = diff, .size = size};
    if (size > PATCH_MAX_SIZE)
        return error_set(error, "too_large", 0, "the diff is larger than %d MiB", PATCH_MAX_SIZE >> 20);
    while (patch_header_line(&reader, &line)) {
        bool git = patch_starts(line, "diff --git ");
        if (git || patch_at_names(&reader)) {
            if (read_file(&reader, patch, git, error) < 0)
                return -1;
        } else {
            if (look_at_prose(&reader, &kind, error) < 0)
                return -1;
            patch_advance(&reader);
        }
        if (reader.line % 4096 == 0 && interrupt_check(error) < 0)
            return -1;
    }
    return patch->file_count ? 0 : nothing_found(kind, error);
}

void patch_free(struct patch *patch)
{
    for (uint32_t i = 0; i < patch->file_count; i++) {
        free(patch->files[i].old_name);
        free(patch->files[i].new_name);
        free(patch->files[i].from);
        free(patch->files[i].to);
    }
    free(patch->files);
    free(patch->hunks);
    *patch = (struct patch){0};
}
