// SPDX-License-Identifier: Apache-2.0
// Parsing a unified diff: from file to file and from hunk to hunk, see patch.h.
#include "core/base/interrupt.h"
#include "core/edit/patch_parse.h"

#include <stdlib.h>
#include <string.h>

static int out_of_memory(struct error *error)
{
    return error_set(error, "out_of_memory", 0, "not enough memory for the diff");
}

static int too_many(int most, const char *what, struct error *error)
{
    return error_set(error, "too_large", 0, "the diff has more than %d %s", most, what);
}

struct patch_file *patch_add_file(struct patch *patch, struct error *error)
{
    if (patch->file_count == PATCH_MAX_FILES)
        return too_many(PATCH_MAX_FILES, "files", error), NULL;
    struct patch_file *files = array_grow(patch->files, patch->file_count, sizeof *files);
    if (!files)
        return out_of_memory(error), NULL;
    patch->files = files;
    files[patch->file_count] = (struct patch_file){0};
    return &files[patch->file_count++];
}

struct patch_hunk *patch_add_hunk(struct patch *patch, struct error *error)
{
    if (patch->hunk_count == PATCH_MAX_HUNKS)
        return too_many(PATCH_MAX_HUNKS, "hunks", error), NULL;
    struct patch_hunk *hunks = array_grow(patch->hunks, patch->hunk_count, sizeof *hunks);
    if (!hunks)
        return out_of_memory(error), NULL;
    patch->hunks = hunks;
    hunks[patch->hunk_count] = (struct patch_hunk){0};
    return &hunks[patch->hunk_count++];
}

// Passes what stands between the last hunk of a file and the next file: blank lines and words. Lines that may be a part
// of a hunk are refused, for a change would be lost.
static int pass_tail(struct patch_reader *reader, struct patch *patch, struct error *error)
{
    struct patch_line line;
    while (!patch_at_separator(reader)) {
        patch_header_line(reader, &line);
        if (patch_at_body(reader) || patch_starts(line, "@@"))
            return patch_invalid(reader, error, "this looks like a part of a hunk, but what stands above it does not");
        if (line.size && line.text[0] == '\\')
            return patch_invalid(reader, error, "'\\ No newline' belongs right below a line of a hunk");
        if (line.size)
            patch->tolerated |= PATCH_PROSE;
        patch_advance(reader);
    }
    return 0;
}

// Whether a hunk is next. If so, moves past blank lines before it.
static bool at_hunk(struct patch_reader *reader, struct patch_file *file)
{
    struct patch_line line;
    struct patch_reader after = *reader;
    if (file->hunk_count)
        patch_pass_blank(&after);
    if (!patch_header_line(&after, &line) || !patch_starts(line, "@@"))
        return false;
    if (after.at != reader->at)
        file->tolerated |= PATCH_BLANK_LINES;
    *reader = after;
    return true;
}

// If only its lines tell where a hunk ends, a code fence right below may have been one of them.
static int check_end(struct patch_reader reader, const struct patch_hunk *hunk, struct error *error)
{
    struct patch_line line;
    if (!(hunk->by_content || hunk->recounted) || !patch_header_line(&reader, &line) || !patch_starts(line, "```"))
        return 0;
    for (patch_advance(&reader); patch_header_line(&reader, &line) && line.size; patch_advance(&reader))
        if (patch_at_body(&reader))
            return patch_invalid(&reader, error, "this looks like a part of the hunk above, but ``` stands between");
        else if (patch_at_separator(&reader))
            break;
    return 0;
}

static int read_hunk(struct patch_reader *reader, struct patch *patch, struct patch_file *file, struct error *error)
{
    struct patch_hunk *hunk = patch_add_hunk(patch, error);
    if (!hunk)
        return -1;
    bool bare = patch_at_bare_hunk(reader);
    if (bare)
        file->tolerated |= PATCH_NO_NUMBERS;
    int status = bare ? patch_read_bare_hunk(reader, patch->diff, false, hunk, error)
                      : patch_read_hunk(reader, patch->diff, hunk, error);
    return status < 0 ? -1 : check_end(*reader, hunk, error);
}

static int read_hunks(struct patch_reader *reader, struct patch *patch, struct patch_file *file, struct error *error)
{
    uint64_t old = 0, new = 0;
    file->first_hunk = patch->hunk_count;
    for (; at_hunk(reader, file); file->hunk_count++) {
        if (interrupt_check(error) < 0 || read_hunk(reader, patch, file, error) < 0)
            return -1;
        const struct patch_hunk *hunk = &patch->hunks[patch->hunk_count - 1];
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
    return pass_tail(reader, patch, error);
}

typedef int read_header(struct patch_reader *reader, struct patch_file *file, struct error *error);

static int read_file(struct patch_reader *reader, struct patch *patch, read_header *read, struct error *error)
{
    uint32_t offset = (uint32_t)(reader->at - patch->diff);
    struct patch_file *file = patch_add_file(patch, error);
    if (!file || read(reader, file, error) < 0)
        return -1;
    file->offset = offset;
    return read_hunks(reader, patch, file, error);
}

static read_header *header_at(const struct patch_reader *reader)
{
    struct patch_line line;
    if (patch_header_line(reader, &line) && patch_starts(line, "diff --git "))
        return patch_read_git_header;
    if (patch_at_names(reader))
        return patch_read_names;
    return patch_at_extensions(reader) ? patch_read_bare_git_header : NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Whether a line is a command of ed or of a normal diff: "3,5c4". *operation is its letter, 'n' for a normal diff.
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

// Whether it is the line "Binary files a/x and b/x differ" of diff and git.
static bool says_binary(struct patch_line line)
{
    static const char end[] = " differ";
    size_t size = sizeof end - 1;
    return patch_starts(line, "Binary files ") && memcmp(line.text + line.size - size, end, size) == 0;
}

// Checks a line outside any file. -1 for a change that is not a unified diff.
static int look_at_prose(const struct patch_reader *reader, bool *ed_script, struct error *error)
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
    if (patch_starts(line, "GIT binary patch") || says_binary(line))
        return patch_refuse_binary(reader, error);
    if (!is_command(line, &operation))
        return 0;
    patch_advance(&after);
    if (operation != 'n')
        *ed_script = true;
    if (patch_header_line(&after, &line) && (patch_starts(line, "< ") || patch_starts(line, "> ")))
        return patch_invalid(reader, error, "a normal diff is not a unified diff; use diff -u");
    return 0;
}

static int nothing_found(bool ed_script, struct error *error)
{
    if (ed_script)
        return error_set(error, "invalid_patch", 0, "an ed script is not a unified diff; it is never run");
    return error_set(error, "invalid_patch", 0,
                     "no change found: a unified diff has lines '--- a/FILE', '+++ b/FILE' and '@@ -1,3 +1,4 @@'");
}

// What stands before, between and after the files of a diff.
struct surroundings {
    bool ed_script; // there was a command of ed
    bool fence;     // a code fence is open
    bool mail;      // it is a mail or a log, which has words
};

static int pass_prose(struct patch_reader *reader, struct patch *patch, struct surroundings *around,
                      struct error *error)
{
    struct patch_line line;
    if (look_at_prose(reader, &around->ed_script, error) < 0)
        return -1;
    patch_header_line(reader, &line);
    if (patch_starts(line, "```")) {
        around->fence = !around->fence;
        patch->tolerated |= PATCH_CODE_FENCE;
    } else if (patch_starts(line, "From ") || patch_starts(line, "commit ")) {
        around->mail = true;
    } else if (line.size && !around->mail && !patch_at_separator(reader)) {
        patch->tolerated |= PATCH_PROSE;
    }
    patch_advance(reader);
    return 0;
}

// A code fence that never closes means that the reply was cut off, unless the last hunk has all of its lines or the
// form has a last line of its own.
static int check_fences(const struct patch_reader *reader, const struct patch *patch, const struct surroundings *around,
                        struct error *error)
{
    const struct patch_hunk *last = patch->hunk_count ? &patch->hunks[patch->hunk_count - 1] : NULL;
    bool whole = patch->tolerated & PATCH_BEGIN_PATCH || (last && !last->recounted && !last->by_content);
    if (!around->fence || !last || whole)
        return 0;
    return patch_invalid(reader, error, "a code fence (```) has no other end: the diff may have been cut off");
}

// Whether the diff changes anything. Git writes a header alone for a file if only its times differ.
static bool changes_anything(const struct patch *patch)
{
    for (uint32_t i = 0; i < patch->file_count; i++) {
        const struct patch_file *file = &patch->files[i];
        if (file->hunk_count || file->action != PATCH_MODIFIED || file->new_mode)
            return true;
    }
    return false;
}

static int read_next(struct patch_reader *reader, struct patch *patch, struct surroundings *around, struct error *error)
{
    if (patch_at_begin(reader))
        return patch_read_begin(reader, patch, error);
    read_header *read = header_at(reader);
    return read ? read_file(reader, patch, read, error) : pass_prose(reader, patch, around, error);
}

int patch_parse(const char *diff, size_t size, struct patch *patch, struct error *error)
{
    struct patch_reader reader = {diff, diff + size, 1};
    struct surroundings around = {0};
    *patch = (struct patch){.diff = diff, .size = size};
    if (size > PATCH_MAX_SIZE)
        return error_set(error, "too_large", 0, "the diff is larger than %d MiB", PATCH_MAX_SIZE >> 20);
    while (reader.at < reader.end) {
        if (read_next(&reader, patch, &around, error) < 0)
            return -1;
        if (interrupt_check(error) < 0)
            return -1;
    }
    return changes_anything(patch) ? check_fences(&reader, patch, &around, error)
                                   : nothing_found(around.ed_script, error);
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
