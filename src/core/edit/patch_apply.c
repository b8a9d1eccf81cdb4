// SPDX-License-Identifier: Apache-2.0
// Applying the hunks of a file to bytes, see patch.h.
#include "core/base/interrupt.h"
#include "core/edit/patch_fit.h"

#include <string.h>

struct application {
    const struct patch *patch;
    const struct patch_file *file;
    struct patch_image image;
    struct patch_body body;
    struct buffer *out;
    struct patch_report *report;
    uint32_t done;   // lines of the image that were copied or removed
    int64_t offset;  // of the last hunk
    bool ends_added; // the last line that was written was added
};

static int no_memory(struct error *error)
{
    return error_set(error, "out_of_memory", 0, "not enough memory for the file");
}

static int end_line(const struct application *application, struct error *error)
{
    bool crlf = application->image.ends == PATCH_ENDS_CRLF;
    return buffer_append(application->out, crlf ? "\r\n" : "\n", crlf ? 2 : 1) < 0 ? no_memory(error) : 0;
}

// A line must not be joined to one that has no newline.
static int begin_line(const struct application *application, struct error *error)
{
    const struct buffer *out = application->out;
    if (!out->size || out->data[out->size - 1] == '\n')
        return 0;
    if (application->report->tolerated & PATCH_FINAL_NEWLINE)
        return end_line(application, error);
    return error_set(
        error, "patch_mismatch", 0,
        "a line would follow one without a newline: '\\ No newline at end of file' is missing or misplaced");
}

static int copy_until(struct application *application, uint32_t line, struct error *error)
{
    const struct patch_image *image = &application->image;
    uint32_t from = image->starts[application->done], to = image->starts[line];
    application->done = line;
    if (to == from)
        return 0;
    application->ends_added = false;
    if (begin_line(application, error) < 0)
        return -1;
    return buffer_append(application->out, image->bytes + from, to - from) < 0 ? no_memory(error) : 0;
}

// Writes an added line with the line end of the file.
static int add_line(struct application *application, struct patch_text text, struct error *error)
{
    application->report->added++;
    application->ends_added = true;
    if (!text.size && !text.newline)
        return 0;
    if (begin_line(application, error) < 0)
        return -1;
    if (buffer_append(application->out, text.text, text.size) < 0)
        return no_memory(error);
    return text.newline ? end_line(application, error) : 0;
}

// Writes the hunk at its place. Context lines are taken from the file.
static int write_hunk(struct application *application, const struct patch_search *found, struct error *error)
{
    uint32_t at = (uint32_t)(found->place + found->head), left = found->head;
    uint32_t kept = found->side->count - found->tail, seen = 0;
    if (copy_until(application, at, error) < 0)
        return -1;
    for (uint32_t i = 0; i < application->body.count; i++) {
        const struct patch_hunk_line *line = &application->body.lines[i];
        if (line->kind == '+') {
            if (copy_until(application, at, error) < 0 || add_line(application, line->text, error) < 0)
                return -1;
            continue;
        }
        if (seen++ < left || seen > kept)
            continue;
        if (line->kind == '-') {
            if (copy_until(application, at, error) < 0)
                return -1;
            application->done = at + 1;
            application->report->removed++;
        }
        at++;
    }
    return copy_until(application, at, error);
}

static void note(struct application *application, const struct patch_hunk *hunk, const struct patch_search *found,
                 int64_t expected)
{
    struct patch_report *report = application->report;
    int64_t distance = found->place - expected;
    if (hunk->by_content)
        return;
    uint32_t fuzz = found->head > found->tail ? found->head : found->tail;
    application->offset = distance;
    if (distance < 0)
        distance = -distance;
    if (distance > report->offset)
        report->offset = (uint32_t)distance;
    if (fuzz > report->fuzz)
        report->fuzz = fuzz;
    report->recounted += hunk->recounted;
}

static int apply_hunk(struct application *application, uint32_t number, struct error *error)
{
    const struct patch_hunk *hunk = &application->patch->hunks[application->file->first_hunk + number];
    int64_t expected = (int64_t)hunk->old_start - (hunk->old_count > 0);
    struct patch_search search = {.patch = application->patch,
                                  .file = application->file,
                                  .hunk = hunk,
                                  .number = number + 1,
                                  .image = &application->image,
                                  .body = &application->body,
                                  .side = &application->body.old,
                                  .guess = expected + application->offset,
                                  .start = hunk->old_start,
                                  .floor = application->done};
    if (patch_body_read(&application->body, application->patch, hunk, application->image.ends) < 0)
        return no_memory(error);
    int status = hunk->by_content ? 0 : patch_find(&search, PATCH_MAX_FUZZ, error);
    if (!status)
        status = patch_find_by_lines(&search, &application->report->tolerated, error);
    if (status < 0)
        return -1;
    if (!status)
        return patch_explain_mismatch(&search, error);
    if (application->body.bare)
        application->report->tolerated |= PATCH_BLANK_LINES;
    note(application, hunk, &search, expected);
    return write_hunk(application, &search, error);
}

// Whether a line of the file's hunks ends in this way.
static bool has_ends(const struct patch *patch, const struct patch_file *file, bool crlf)
{
    for (uint32_t i = 0; i < file->hunk_count; i++) {
        const struct patch_hunk *hunk = &patch->hunks[file->first_hunk + i];
        if (crlf ? hunk->crlf : hunk->lf)
            return true;
    }
    return false;
}

// If all lines of the diff end in one way and all lines of the file in the other, added lines get the file's, so that
// no file ends up with both. Otherwise line ends are compared as bytes.
static enum patch_ends choose_ends(const struct application *application)
{
    const struct patch_image *image = &application->image;
    if (!image->crlf == !image->lf || has_ends(application->patch, application->file, image->crlf != 0))
        return PATCH_ENDS_EXACT;
    return image->crlf ? PATCH_ENDS_CRLF : PATCH_ENDS_LF;
}

// One hunk that only adds, at line 0, means that the file is new or empty. Git writes the same for lines inserted at
// the top without context (-U0), but then its header names the content that was there.
static bool says_empty(const struct application *application)
{
    const struct patch_hunk *hunk = &application->patch->hunks[application->file->first_hunk];
    return application->file->hunk_count == 1 && !hunk->by_content && hunk->old_start == 0 && hunk->old_count == 0;
}

// A file without a final newline, which the diff does not mention, stays without one; but an empty line needs one.
static void keep_open_end(struct application *application)
{
    struct buffer *out = application->out;
    size_t end = application->image.ends == PATCH_ENDS_CRLF ? 2 : 1;
    if (!application->ends_added || !(application->report->tolerated & PATCH_FINAL_NEWLINE))
        return;
    if (out->size > end && out->data[out->size - 1] == '\n' && out->data[out->size - end - 1] != '\n')
        out->size -= end;
}

static int apply_all(struct application *application, struct error *error)
{
    static const char letters[] = {0, 'c', 'l'};
    if (application->image.count && application->file->hunk_count && says_empty(application) &&
        (!application->file->not_empty ||
         patch_is_as_added(application->patch, application->file, &application->image)))
        return patch_explain_exists(application->patch, application->file, &application->image, error);
    application->image.ends = choose_ends(application);
    application->report->line_ends = letters[application->image.ends];
    for (uint32_t i = 0; i < application->file->hunk_count; i++)
        if (interrupt_check(error) < 0 || apply_hunk(application, i, error) < 0)
            return -1;
    if (copy_until(application, application->image.count, error) < 0)
        return -1;
    keep_open_end(application);
    return 0;
}

int patch_apply(const struct patch *patch, uint32_t file, const char *bytes, size_t size, struct buffer *out,
                struct patch_report *report, struct error *error)
{
    struct application application = {.patch = patch, .file = &patch->files[file], .out = out, .report = report};
    *report = (struct patch_report){.tolerated = patch->files[file].tolerated};
    if (size > PATCH_MAX_TARGET)
        return error_set(error, "too_large", 0, "a file of more than %d MiB is not patched", PATCH_MAX_TARGET >> 20);
    int status = patch_image_split(&application.image, bytes, size);
    if (status < 0 || buffer_reserve(out, size + size / 16 + 64) < 0)
        status = no_memory(error);
    else
        status = apply_all(&application, error);
    patch_body_free(&application.body);
    patch_image_free(&application.image);
    return status;
}
