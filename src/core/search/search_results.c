// SPDX-License-Identifier: Apache-2.0
// Collects matching lines within their limits, see search.h.
#include "core/search/search_internal.h"
#include "core/text/secret.h"
#include "core/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 1000, // bytes of a long line that are shown
    TEXT_BEFORE = 200,
};

int search_out_of_memory(struct error *error)
{
    return error_set(error, "out_of_memory", 0, "out of memory while searching");
}

void search_results_free(struct search_results *results)
{
    free(results->matches);
    buffer_free(&results->bytes);
    results->matches = NULL;
    results->count = 0;
}

// Appends text from a file as UTF-8 without secrets.
static int append_clean(struct buffer *bytes, const char *text, size_t size, unsigned cuts)
{
    cleanup_buffer struct buffer clean = {0};
    if (!secret_is_known())
        return text_repair(text, size, bytes);
    if (buffer_append(&clean, text, size) < 0 || secret_redact(&clean, cuts) < 0)
        return -1;
    return text_repair(clean.data, clean.size, bytes);
}

// Appends the line to bytes as UTF-8. A long one is cut around the start of the match.
static int append_text(struct buffer *bytes, const char *line, size_t size, size_t start)
{
    size_t from = 0, to = size;
    if (size > TEXT_MAX) {
        from = start > TEXT_BEFORE ? start - TEXT_BEFORE : 0;
        if (from > size - TEXT_MAX)
            from = size - TEXT_MAX;
        to = from + TEXT_MAX;
    }
    for (int i = 0; i < 3 && from > 0 && search_is_continuation(line[from]); i++)
        from++;
    for (int i = 0; i < 3 && to < size && search_is_continuation(line[to]); i++)
        to--;
    if (from > 0 && buffer_append(bytes, "...", 3) < 0)
        return -1;
    unsigned cuts = (from > 0 ? SECRET_CUT_START : 0) | (to < size ? SECRET_CUT_END : 0);
    if (append_clean(bytes, line + from, to - from, cuts) < 0)
        return -1;
    return to < size ? buffer_append(bytes, "...", 3) : 0;
}

// Adds the path to the results, once, before the first match of its file.
static int append_path(struct scan *scan)
{
    struct buffer *bytes = &scan->results->bytes;
    if (scan->path_size > 0)
        return 0;
    scan->path_at = bytes->size;
    if (append_clean(bytes, scan->path, strlen(scan->path), 0) < 0)
        return -1;
    scan->path_size = bytes->size - scan->path_at;
    return 0;
}

// Bytes that the match takes in the result, with a comma.
static size_t json_size(const struct search_results *results, const struct search_match *match)
{
    const char *bytes = results->bytes.data;
    return text_json_size(bytes + match->path, match->path_size) +
           text_json_size(bytes + match->text, match->text_size) + (size_t)snprintf(NULL, 0, "%" PRId64, match->line) +
           strlen("{\"path\":\"\",\"line\":,\"text\":\"\"},");
}

int search_add_match(struct scan *scan, const char *line, size_t size, size_t start)
{
    struct search_results *results = scan->results;
    if (results->count >= results->max_matches) {
        results->limit = SEARCH_MATCHES;
        return 1;
    }
    struct search_match *matches = array_grow(results->matches, results->count, sizeof *matches);
    if (!matches)
        return search_out_of_memory(scan->error);
    results->matches = matches;
    if (append_path(scan) < 0)
        return search_out_of_memory(scan->error);
    size_t text_at = results->bytes.size;
    if (append_text(&results->bytes, line, size, start) < 0)
        return search_out_of_memory(scan->error);
    struct search_match match = {scan->path_at, scan->path_size, text_at, results->bytes.size - text_at, scan->last};
    size_t cost = json_size(results, &match);
    if (results->json_bytes + cost > results->max_bytes) {
        results->limit = SEARCH_BYTES;
        return 1;
    }
    results->json_bytes += cost;
    results->matches[results->count++] = match;
    return 0;
}
