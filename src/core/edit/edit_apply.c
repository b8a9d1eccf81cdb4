// SPDX-License-Identifier: Apache-2.0
// What edits make of a file, see edit.h.
#include "core/edit/edit_anchor.h"
#include "core/edit/edit_find.h"

#include <string.h>

enum { SHOWN = 80 }; // bytes of an anchor in a message

struct application {
    struct edit_file file;
    struct edit_body body;
    struct buffer *out;
    struct edit_report *report;
    uint32_t left;   // hunks, with the one that is applied
    uint32_t done;   // lines of the file that were copied or removed
    int64_t offset;  // of the last hunk
    bool ends_added; // the last line that was written was added
    bool is_starved; // memory is out
};

static void append(struct application *application, const char *bytes, size_t size)
{
    application->is_starved |= buffer_append(application->out, bytes, size) < 0;
}

static void end_line(struct application *application, bool crlf)
{
    append(application, crlf ? "\r\n" : "\n", crlf ? 2 : 1);
}

// A line must not be joined to one that has no newline.
static int begin_line(struct application *application, struct error *error)
{
    const struct buffer *out = application->out;
    if (out->size <= application->file.starts[0] || out->data[out->size - 1] == '\n')
        return 0;
    if (!(application->report->tolerated & EDIT_FINAL_NEWLINE))
        return error_set(
            error, "patch_mismatch", 0,
            "a line would follow one without a newline: '\\ No newline at end of file' is missing or misplaced");
    end_line(application, application->file.ends == EDIT_ENDS_CRLF);
    return 0;
}

static int copy_until(struct application *application, uint32_t line, struct error *error)
{
    const struct edit_file *file = &application->file;
    uint32_t from = file->starts[application->done], to = file->starts[line];
    application->done = line;
    if (to == from)
        return 0;
    application->ends_added = false;
    if (begin_line(application, error) < 0)
        return -1;
    append(application, file->bytes + from, to - from);
    return 0;
}

// Writes the indentation that a line gets, and takes its own, or a part of it, from the line.
static int indent(struct application *application, const struct edit_shift *shift, struct edit_line *line,
                  struct error *error)
{
    uint32_t own = edit_indent(*line), used = 0;
    if (own == edit_trim(*line, EDIT_TRAILING).size)
        return 0;
    if (shift->kind == SHIFT_MORE)
        append(application, shift->text, shift->size);
    else if (shift->kind == SHIFT_LESS)
        used = own >= shift->size && memcmp(line->text, shift->text, shift->size) == 0 ? shift->size : UINT32_MAX;
    else if (memchr(line->text, ' ', own))
        used = !memchr(line->text, '\t', own) && own % shift->size == 0 ? own : UINT32_MAX;
    if (used == UINT32_MAX)
        return error_set(
            error, "patch_mismatch", 0,
            "the lines are there with other indentation, which the new ones cannot get: indent as the file is");
    for (uint32_t tabs = shift->kind == SHIFT_TABS ? used / shift->size : 0; tabs; tabs--)
        append(application, "\t", 1);
    line->text += used;
    line->size -= used;
    return 0;
}

static int add_line(struct application *application, const struct edit_search *found, const struct edit_shift *shift,
                    struct edit_line line, struct error *error)
{
    bool crlf = application->file.ends == EDIT_ENDS_CRLF;
    application->report->added++;
    application->ends_added = true;
    if (!line.size && !line.newline)
        return 0;
    if (found->level > EDIT_EXACT && application->file.ends == EDIT_ENDS_AS_THEY_ARE && found->side->count) {
        // As the line it was found at.
        struct edit_line there = edit_line_at(&application->file, (uint32_t)found->place);
        crlf = edit_ends_cr(there);
        line.size -= edit_ends_cr(line);
    }
    if (begin_line(application, error) < 0 || (shift && indent(application, shift, &line, error) < 0))
        return -1;
    append(application, line.text, line.size);
    if (line.newline)
        end_line(application, crlf);
    return 0;
}

// Writes the edit at its place. Context lines are taken from the file.
static int write_edit(struct application *application, const struct edit_search *found, struct error *error)
{
    struct edit_shift shift, *shifted = found->level == EDIT_INDENTED ? &shift : NULL;
    // The line of the file to which the edit has come; lines of the old side without the tail, and so far.
    uint32_t at = (uint32_t)(found->place + found->head), kept = found->side->count - found->tail, seen = 0;
    if (shifted)
        edit_place_shift(found, found->place, shifted);
    if (copy_until(application, at, error) < 0)
        return -1;
    for (uint32_t i = 0; i < application->body.all.count; i++) {
        const struct edit_line *line = &application->body.all.lines[i];
        if (line->kind == '+') {
            if (copy_until(application, at, error) < 0 || add_line(application, found, shifted, *line, error) < 0)
                return -1;
            continue;
        }
        if (seen++ < found->head || seen > kept)
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

static void note(struct application *application, const struct edit_search *found, int64_t expected)
{
    struct edit_report *report = application->report;
    const struct edit_hunk *hunk = found->hunk;
    const int64_t offset = found->place - expected;
    uint32_t fuzz = found->head > found->tail ? found->head : found->tail;
    report->tolerated |= edit_differences(found) | (application->body.bare ? EDIT_BLANK_LINES : 0u);
    if (hunk->by_content)
        return;
    application->offset = offset;
    if (llabs(offset) > report->offset)
        report->offset = (uint32_t)llabs(offset);
    if (fuzz > report->fuzz)
        report->fuzz = fuzz;
}

static int refuse(struct application *application, const char *code, int64_t line, int64_t other, struct error *error)
{
    application->report->line = (uint32_t)(line < 0 ? 1 : line + 1);
    application->report->other = (uint32_t)other + 1;
    return error_set(error, code, 0, "the hunk does not fit");
}

// Says which anchor the file lacks, or what does not stand below the last one. Report.line stays 0: the message says
// all.
static int refuse_anchor(const struct edit_search *search, struct error *error)
{
    bool lacks = search->missing < search->anchors->count;
    struct edit_line line = search->anchors->lines[lacks ? search->missing : search->anchors->count - 1];
    int size = line.size > SHOWN ? SHOWN : (int)line.size;
    return error_set(error, "patch_mismatch", 0,
                     lacks ? "its anchor `@@ %.*s` is not a line of the file%s"
                           : "its lines do not stand below its anchor `@@ %.*s`%s",
                     size, line.text, lacks && search->missing ? ", below the anchor before it" : "");
}

static int apply_hunk(struct application *application, const char *diff, const struct edit_hunk *hunk,
                      struct error *error)
{
    struct edit_body *body = &application->body;
    int64_t expected = (int64_t)hunk->old_start - (hunk->old_count > 0), there;
    struct edit_search search = {.hunk = hunk,
                                 .file = &application->file,
                                 .body = body,
                                 .guess = expected + application->offset,
                                 .floor = application->done};
    struct edit_anchors anchors;
    if (edit_anchors_read(&anchors, diff, hunk) < 0)
        return error_set(error, "patch_mismatch", 0, "it has more than %d anchors", EDIT_MAX_ANCHORS);
    search.anchors = anchors.count ? &anchors : NULL;
    if (edit_body_read(body, diff + hunk->body, diff + hunk->end, application->file.ends) < 0)
        return error_memory(error, "cannot place the edit");
    enum edit_found found = edit_find(&search, error), found_new = EDIT_NOWHERE;
    if (found == EDIT_NOWHERE)
        found_new = edit_find_new(&search, &there, error);
    if (found == EDIT_FAILED || found_new == EDIT_FAILED)
        return -1;
    if (found == EDIT_TWICE)
        return refuse(application, "patch_ambiguous", search.place, search.other, error);
    if (found_new != EDIT_NOWHERE)
        return refuse(application, "already_applied", there, 0, error);
    if (found == EDIT_NOWHERE && search.anchors)
        return refuse_anchor(&search, error);
    if (found == EDIT_NOWHERE)
        return refuse(application, "patch_mismatch", search.guess, 0, error);
    note(application, &search, expected);
    if (application->left == 1)
        edit_drop_index(&application->file); // before the rest of the file is copied
    return write_edit(application, &search, error);
}

// If all lines of an edit end in one way and all lines of the file in the other, added lines get the file's, so that no
// file ends up with both. Otherwise line ends count as all bytes do.
static enum edit_ends choose_ends(const struct edit_file *file, bool crlf, bool lf)
{
    if (!file->crlf == !file->lf || (file->crlf ? crlf : lf))
        return EDIT_ENDS_AS_THEY_ARE;
    return file->crlf ? EDIT_ENDS_CRLF : EDIT_ENDS_LF;
}

// A file without a final newline, which the edit does not mention, stays without one; but an empty line needs one.
static void keep_open_end(struct application *application)
{
    struct buffer *out = application->out;
    size_t end = out->size > 1 && out->data[out->size - 2] == '\r' ? 2 : 1;
    if (!application->ends_added || !(application->report->tolerated & EDIT_FINAL_NEWLINE))
        return;
    const size_t least = application->file.starts[0] + end; // below a byte order mark too
    if (out->size > least && out->data[out->size - 1] == '\n' && out->data[out->size - end - 1] != '\n')
        out->size -= end;
}

static void release(struct application *application)
{
    edit_body_free(&application->body);
    edit_file_free(&application->file);
}

int edit_apply(const struct edit_hunks *hunks, uint32_t first, uint32_t count, const char *bytes, size_t size,
               struct buffer *out, struct edit_report *report, struct error *error)
{
    __attribute__((cleanup(release))) struct application application = {.out = out, .report = report};
    bool crlf = false, lf = false, has_mark = false;
    *report = (struct edit_report){0};
    for (uint32_t i = first; i < first + count; i++) {
        crlf |= hunks->items[i].crlf;
        lf |= hunks->items[i].lf;
        has_mark |= hunks->items[i].has_mark;
    }
    if (edit_split(&application.file, bytes, size, !has_mark) < 0 || buffer_reserve(out, size + size / 16 + 64) < 0)
        return error_memory(error, "cannot place the edit");
    append(&application, bytes, application.file.starts[0]); // the byte order mark stays
    report->line_ends = application.file.ends = choose_ends(&application.file, crlf, lf);
    for (uint32_t i = 0; i < count; i++) {
        report->hunk = i + 1;
        application.left = count - i;
        if (apply_hunk(&application, hunks->diff, &hunks->items[first + i], error) < 0)
            return -1;
    }
    if (copy_until(&application, application.file.count, error) < 0)
        return -1;
    if (application.is_starved)
        return error_memory(error, "cannot place the edit");
    keep_open_end(&application);
    if (out->size == application.file.starts[0] && report->removed)
        out->size = 0; // a file of no lines has no mark
    return 0;
}
