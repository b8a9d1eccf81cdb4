// SPDX-License-Identifier: Apache-2.0
// Reads the lines before the hunks of a file, see patch_parse.h.
#include "core/edit/patch_parse.h"

#include <stdlib.h>
#include <string.h>

int patch_refuse_binary(const struct patch_reader *reader, struct error *error)
{
    return error_set(error, "binary_patch", 0,
                     "line %u of the diff: a binary patch cannot be applied; write the file with write_file instead",
                     reader->line);
}

static bool is_null(const char *name)
{
    return strcmp(name, "/dev/null") == 0;
}

static int no_name(const struct patch_reader *reader, struct error *error)
{
    return patch_invalid(reader, error, "no file name can be read here (empty, with a NUL, or its quotes are wrong)");
}

// The text of the next line after the prefix. A line that is too long is refused.
static int rest_of(const struct patch_reader *reader, size_t prefix, struct patch_line *rest, struct error *error)
{
    patch_header_line(reader, rest);
    if (rest->size > PATCH_MAX_NAME_LINE)
        return patch_invalid(reader, error, "this line is too long to hold a file name");
    rest->text += prefix;
    rest->size -= prefix;
    return 0;
}

static int keep_name(char **slot, char *name)
{
    free(*slot);
    *slot = name;
    return 0;
}

// Reads "--- a/x" or "+++ b/x" below "diff --git", which must be the name that stands there.
static int git_name(struct patch_reader *reader, struct patch_file *file, bool is_old, struct error *error)
{
    char **slot = is_old ? &file->old_name : &file->new_name;
    const char *plain = is_old ? file->from : file->to;
    bool absent = file->action == (is_old ? PATCH_CREATED : PATCH_DELETED);
    struct patch_line rest;
    if (rest_of(reader, 4, &rest, error) < 0)
        return -1;
    char *name = patch_name_dated(rest.text, rest.size);
    if (!name)
        return no_name(reader, error);
    bool agrees = is_null(name) ? !plain
                                : !absent && (!*slot || patch_name_same(*slot, name)) &&
                                      (!plain || patch_name_agrees(name, plain));
    if (agrees && (is_null(name) || !*slot))
        return keep_name(slot, name);
    free(name);
    if (agrees)
        return 0;
    return patch_invalid(reader, error, "this name is not the one that the lines above it say");
}

static int plain_name(struct patch_reader *reader, char **slot, size_t prefix, struct error *error)
{
    struct patch_line rest;
    if (rest_of(reader, prefix, &rest, error) < 0)
        return -1;
    char *name = patch_name_whole(rest.text, rest.size);
    return name ? keep_name(slot, name) : no_name(reader, error);
}

static int read_mode(struct patch_reader *reader, size_t prefix, unsigned *mode, struct error *error)
{
    struct patch_line line;
    patch_header_line(reader, &line);
    unsigned value = 0;
    for (size_t i = prefix; i < line.size && line.text[i] >= '0' && line.text[i] <= '7' && value < 0200000; i++)
        value = value << 3 | (unsigned)(line.text[i] - '0');
    if (value == 0160000)
        return patch_invalid(reader, error, "mode 160000 is a submodule, which a patch of files cannot change");
    if (line.size != prefix + 6 || ((value & ~0777u) != 0100000 && value != 0120000))
        return patch_invalid(reader, error, "a mode must be 100644, 100755 or the like, or 120000 (a symbolic link)");
    *mode = value;
    return 0;
}

// Whether a hash, maybe abbreviated, means that there is no content: all zeros, or the empty blob's SHA-1 or SHA-256.
static bool is_hash_of_nothing(const char *hash, size_t size)
{
    static const char *const hashes[] = {"0000000000000000000000000000000000000000000000000000000000000000",
                                         "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
                                         "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"};
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
        if (size <= strlen(hashes[i]) && memcmp(hash, hashes[i], size) == 0)
            return true;
    return false;
}

// Reads "index 1234567..89abcde 100644": whether the old content is empty, and the mode, if both sides have the same.
static int index_line(struct patch_reader *reader, struct patch_file *file, size_t prefix, struct error *error)
{
    struct patch_line line;
    patch_header_line(reader, &line);
    const char *blank = memchr(line.text + prefix, ' ', line.size - prefix);
    const char *dots = memmem(line.text + prefix, line.size - prefix, "..", 2);
    file->not_empty = dots && !is_hash_of_nothing(line.text + prefix, (size_t)(dots - line.text) - prefix);
    if (!blank || file->action == PATCH_DELETED)
        return 0;
    return read_mode(reader, (size_t)(blank + 1 - line.text), &file->old_mode, error);
}

// What a line of git's header gives.
enum field { NO_FIELD, OLD_NAME, NEW_NAME, FROM, TO, OLD_MODE, NEW_MODE, INDEX };

static const struct extension {
    const char *prefix;
    enum field field;
    enum patch_action action; // that the line says; PATCH_MODIFIED: none
} extensions[] = {
    {"--- ", OLD_NAME, PATCH_MODIFIED},
    {"+++ ", NEW_NAME, PATCH_MODIFIED},
    {"index ", INDEX, PATCH_MODIFIED},
    {"old mode ", OLD_MODE, PATCH_MODIFIED},
    {"new mode ", NEW_MODE, PATCH_MODIFIED},
    {"new file mode ", NEW_MODE, PATCH_CREATED},
    {"deleted file mode ", OLD_MODE, PATCH_DELETED},
    {"deleted file", OLD_MODE, PATCH_DELETED},
    {"rename from ", FROM, PATCH_RENAMED},
    {"rename old ", FROM, PATCH_RENAMED},
    {"rename to ", TO, PATCH_RENAMED},
    {"rename new ", TO, PATCH_RENAMED},
    {"copy from ", FROM, PATCH_COPIED},
    {"copy to ", TO, PATCH_COPIED},
    {"similarity index ", NO_FIELD, PATCH_MODIFIED},
    {"dissimilarity index ", NO_FIELD, PATCH_MODIFIED},
};

static const struct extension *extension_of(struct patch_line line)
{
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (patch_starts(line, extensions[i].prefix))
            return &extensions[i];
    return NULL;
}

static int read_extension(struct patch_reader *reader, const struct extension *extension, struct patch_file *file,
                          struct error *error)
{
    struct patch_line line;
    size_t prefix = strlen(extension->prefix);
    patch_header_line(reader, &line);
    if (extension->action != PATCH_MODIFIED)
        file->action = extension->action;
    switch (extension->field) {
    case OLD_NAME:
    case NEW_NAME:
        return git_name(reader, file, extension->field == OLD_NAME, error);
    case FROM:
        return plain_name(reader, &file->from, prefix, error);
    case TO:
        return plain_name(reader, &file->to, prefix, error);
    case OLD_MODE:
        if (extension->action == PATCH_DELETED && line.size == prefix)
            return 0;
        return read_mode(reader, prefix, &file->old_mode, error);
    case NEW_MODE:
        return read_mode(reader, prefix, &file->new_mode, error);
    case INDEX:
        return index_line(reader, file, prefix, error);
    default:
        return 0;
    }
}

static int read_extensions(struct patch_reader *reader, struct patch_file *file, struct error *error)
{
    struct patch_line line;
    const struct extension *extension;
    int names = 0;
    while (patch_header_line(reader, &line) && (extension = extension_of(line))) {
        if (patch_starts(line, "--- ") || patch_starts(line, "+++ "))
            names ^= line.text[0] == '-' ? 1 : 2;
        if (read_extension(reader, extension, file, error) < 0)
            return -1;
        patch_advance(reader);
    }
    if (patch_header_line(reader, &line) &&
        (patch_starts(line, "GIT binary patch") || patch_starts(line, "Binary files ")))
        return patch_refuse_binary(reader, error);
    if (names != 0 && names != 3)
        return patch_invalid(reader, error, "the header above has only one of its lines '---' and '+++'");
    return 0;
}

// The name /dev/null means that the file is new or deleted.
static void settle_null(struct patch_file *file)
{
    if (file->old_name && is_null(file->old_name)) {
        keep_name(&file->old_name, NULL);
        file->action = PATCH_CREATED;
    }
    if (file->new_name && is_null(file->new_name)) {
        keep_name(&file->new_name, NULL);
        file->action = PATCH_DELETED;
    }
}

static int settle(struct patch_reader *reader, struct patch_file *file, struct error *error)
{
    if ((file->from || file->to) && file->action != PATCH_RENAMED && file->action != PATCH_COPIED)
        return patch_invalid(reader, error, "the header above says two things about the file that exclude each other");
    if (file->from && file->to)
        return 0;
    if (file->from || file->to)
        return patch_invalid(reader, error, "the header above says only one of the two names");
    settle_null(file);
    if (file->action == PATCH_CREATED)
        keep_name(&file->old_name, NULL);
    if (file->action == PATCH_DELETED)
        keep_name(&file->new_name, NULL);
    if ((file->action != PATCH_CREATED && !file->old_name) || (file->action != PATCH_DELETED && !file->new_name))
        return patch_invalid(reader, error, "the header above does not say which file it is about");
    return 0;
}

static enum patch_prefix prefix_of(const char *old_name, const char *new_name)
{
    if (!old_name || !new_name || is_null(old_name) || is_null(new_name))
        return PATCH_PREFIX_UNKNOWN;
    if (strcmp(old_name, new_name) == 0)
        return PATCH_PREFIX_NONE;
    return patch_name_same(old_name, new_name) ? PATCH_PREFIX_GIT : PATCH_PREFIX_UNKNOWN;
}

int patch_read_git_header(struct patch_reader *reader, struct patch_file *file, struct error *error)
{
    static const char prefix[] = "diff --git ";
    struct patch_line rest;
    *file = (struct patch_file){.git = true, .line = reader->line};
    if (rest_of(reader, sizeof prefix - 1, &rest, error) < 0)
        return -1;
    patch_name_pair(rest.text, rest.size, &file->old_name, &file->new_name);
    file->prefix = prefix_of(file->old_name, file->new_name);
    patch_advance(reader);
    return read_extensions(reader, file, error) < 0 ? -1 : settle(reader, file, error);
}

bool patch_at_extensions(const struct patch_reader *reader)
{
    enum { MOST_LINES = 16 }; // git writes at most 7; with a limit, text that resembles headers takes linear time
    struct patch_line line;
    struct patch_reader after = *reader;
    bool from = false, to = false;
    while (after.line - reader->line < MOST_LINES && !patch_at_names(&after) && patch_header_line(&after, &line) &&
           extension_of(line)) {
        from |= patch_starts(line, "rename from ") || patch_starts(line, "copy from ");
        to |= patch_starts(line, "rename to ") || patch_starts(line, "copy to ");
        patch_advance(&after);
    }
    return after.at != reader->at && ((from && to) || (patch_at_names(&after) && !from && !to));
}

int patch_read_bare_git_header(struct patch_reader *reader, struct patch_file *file, struct error *error)
{
    *file = (struct patch_file){.line = reader->line, .tolerated = PATCH_NO_GIT_LINE};
    if (read_extensions(reader, file, error) < 0)
        return -1;
    file->git = file->from != NULL;
    return settle(reader, file, error);
}

int patch_read_names(struct patch_reader *reader, struct patch_file *file, struct error *error)
{
    *file = (struct patch_file){.line = reader->line};
    for (char **slot = &file->old_name;; slot = &file->new_name) {
        struct patch_line rest;
        if (rest_of(reader, 4, &rest, error) < 0)
            return -1;
        *slot = patch_name_dated(rest.text, rest.size);
        if (!*slot)
            return no_name(reader, error);
        if (patch_name_is_epoch(rest.text, rest.size))
            file->action = slot == &file->old_name ? PATCH_CREATED : PATCH_DELETED;
        patch_advance(reader);
        if (slot == &file->new_name)
            break;
    }
    settle_null(file);
    if (!file->old_name && !file->new_name)
        return patch_invalid(reader, error, "the header above does not say which file it is about");
    return 0;
}
