// SPDX-License-Identifier: Apache-2.0
// A tree as JSON and as plain text, see workspace_list.h.
#include "core/workspace_list.h"

#include "core/cleanup.h"
#include "core/secret.h"
#include "core/text.h"

#include <string.h>

struct writer {
    struct workspace_list *list;
    struct workspace_tree *tree;
    struct buffer name; // room to repair and redact one
    size_t depth;       // arrays that are open
};

void workspace_mode_text(mode_t mode, char text[5])
{
    for (int i = 3; i >= 0; i--, mode >>= 3)
        text[i] = (char)('0' + (mode & 7));
    text[4] = '\0';
}

static inline int put(struct buffer *out, const char *text)
{
    return buffer_append(out, text, strlen(text));
}

static int put_number(struct buffer *out, uint64_t number)
{
    char digits[20], *at = digits + sizeof digits;
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    return buffer_append(out, at, (size_t)(digits + sizeof digits - at));
}

// Appends UTF-8 without control characters.
static int put_shown(struct buffer *text, const char *bytes, size_t size)
{
    if (buffer_reserve(text, size) < 0)
        return -1;
    for (const char *end = bytes + size; bytes < end; bytes++)
        text->data[text->size++] = (unsigned char)*bytes < ' ' || *bytes == 0x7F ? '?' : *bytes;
    return 0;
}

// Makes a name UTF-8 without secrets. 1: it is in `clean`; 0: it is so already; -1: memory is out.
static int clean_name(const char *bytes, size_t size, struct buffer *clean)
{
    clean->size = 0;
    if (text_is_utf8(bytes, size))
        return secret_redact_copy(bytes, size, 0, clean);
    return text_repair(bytes, size, clean) < 0 || secret_redact(clean, 0) < 0 ? -1 : 1;
}

// Appends a name or a link's target to JSON and text, repaired and redacted.
static int put_name(struct writer *writer, const char *bytes)
{
    size_t size = strlen(bytes);
    int changed = clean_name(bytes, size, &writer->name);
    if (changed < 0)
        return -1;
    if (changed) {
        bytes = writer->name.data;
        size = writer->name.size;
    }
    return text_json_escape(bytes, size, writer->list->children) < 0 ? -1 : put_shown(writer->list->text, bytes, size);
}

static int put_target(struct writer *writer, struct buffer *json)
{
    cleanup_free char *target = workspace_tree_target(writer->tree);
    if (!target)
        return 0;
    return put(json, ",\"target\":\"") < 0 || put(writer->list->text, " -> ") < 0 || put_name(writer, target) < 0 ||
                   put(json, "\"") < 0
               ? -1
               : 0;
}

// Ends the entry's line.
static int end_line(struct buffer *text, const struct workspace_tree_entry *entry)
{
    if (S_ISDIR(entry->mode))
        return put(text, "/\n");
    if (S_ISREG(entry->mode) || S_ISLNK(entry->mode))
        return put(text, "\n");
    return put(text, " (") < 0 || put(text, workspace_type_name(entry->mode)) < 0 || put(text, ")\n") < 0 ? -1 : 0;
}

// Appends the entry's object, without its end if the directory was entered, and its line.
static int put_entry(struct writer *writer, const struct workspace_tree_entry *entry)
{
    char mode[5];
    struct buffer *json = writer->list->children, *text = writer->list->text;
    workspace_mode_text(entry->mode, mode);
    for (size_t i = 0; i < entry->depth; i++)
        if (buffer_append(text, "  ", 2) < 0)
            return -1;
    if (put(json, "{\"name\":\"") < 0 || put_name(writer, entry->name) < 0 || put(json, "\",\"type\":\"") < 0 ||
        put(json, workspace_type_name(entry->mode)) < 0 || put(json, "\",\"size_bytes\":") < 0 ||
        put_number(json, entry->size) < 0 || put(json, ",\"mode\":\"") < 0 || put(json, mode) < 0 ||
        put(json, "\"") < 0)
        return -1;
    if (S_ISLNK(entry->mode) && put_target(writer, json) < 0)
        return -1;
    return put(json, entry->entered ? ",\"children\":[" : "}") < 0 ? -1 : end_line(text, entry);
}

// Closes arrays until only depth of them are open.
static int close_to(struct writer *writer, size_t depth)
{
    for (; writer->depth > depth; writer->depth--)
        if (put(writer->list->children, writer->depth > 1 ? "]}" : "]") < 0)
            return -1;
    return 0;
}

// Adds an entry below the start: 1; 0: it does not fit; -1: memory is out.
static int add_entry(struct writer *writer, const struct workspace_tree_entry *entry, size_t room)
{
    struct buffer *json = writer->list->children, *text = writer->list->text;
    if (close_to(writer, entry->depth) < 0)
        return -1;
    size_t json_size = json->size, text_size = text->size;
    if (json->data[json->size - 1] != '[' && buffer_append_byte(json, ',') < 0)
        return -1;
    if (put_entry(writer, entry) < 0)
        return -1;
    size_t open = entry->depth + (entry->entered ? 1 : 0);
    if (json->size + 2 * open - 1 <= room) {
        writer->depth = open;
        return 1;
    }
    json->size = json_size;
    text->size = text_size;
    return 0;
}

// Measures the start, which is not one of the children, and writes its line. *room is what is left of max_bytes.
static int begin(struct writer *writer, const struct workspace_tree_entry *start, size_t *room)
{
    struct workspace_list *list = writer->list;
    if (put_entry(writer, start) < 0)
        return -1;
    size_t size = list->children->size; // with the children's opening bracket, without the end of the object
    *room = size > list->max_bytes ? 0 : list->max_bytes - size;
    list->children->size = 0;
    writer->depth = start->entered;
    return start->entered ? put(list->children, "[") : 0;
}

// 0 at the end of the walk or at a limit; -1 and *error; -1 alone: memory is out.
static int write_rest(struct writer *writer, size_t room, struct error *error)
{
    struct workspace_list *list = writer->list;
    struct workspace_tree_entry entry;
    int outcome;
    for (size_t count = 0; (outcome = workspace_tree_next(writer->tree, &entry, error)) > 0; count++) {
        if (entry.depth == WORKSPACE_LIST_DEPTH && S_ISDIR(entry.mode) && list->max_depth > WORKSPACE_LIST_DEPTH)
            list->cut = "max_depth";
        if (count == list->max_entries) {
            list->cut = "max_entries";
            return 0;
        }
        int added = add_entry(writer, &entry, room);
        if (added == 0)
            list->cut = "max_bytes";
        if (added <= 0)
            return added;
    }
    return outcome;
}

int workspace_list(struct workspace_tree *tree, const struct workspace_tree_entry *start, struct workspace_list *list,
                   struct error *error)
{
    struct writer writer = {.list = list, .tree = tree};
    size_t room;
    int outcome = begin(&writer, start, &room) < 0 ? -1 : write_rest(&writer, room, error);
    if (outcome == 0)
        outcome = close_to(&writer, 0);
    buffer_free(&writer.name);
    if (outcome < 0 && !error->code)
        return error_set(error, "out_of_memory", 0, "out of memory while listing files");
    return outcome;
}
