// SPDX-License-Identifier: Apache-2.0
// A file and an edit as lines. Lines are numbered from 0 here.
#ifndef SBA_CORE_EDIT_LINES_H
#define SBA_CORE_EDIT_LINES_H

#include "core/edit/edit.h"

// How lines are compared. CR LF and LF are the same from EDIT_TRAILING on.
enum edit_level { EDIT_EXACT, EDIT_TRAILING, EDIT_INDENTED, EDIT_LEVELS };

struct edit_line {
    const char *text; // without its end
    uint32_t size;
    bool newline;
    char kind; // of an edit's line: ' ', '-' or '+'
};

struct edit_file {
    const char *bytes; // not owned
    uint32_t *starts;  // count + 1 offsets
    uint32_t count;
    uint32_t crlf; // lines that end in CR LF
    uint32_t lf;   // in LF alone
    enum edit_ends ends;
    // The index, made when first needed: line numbers by hash, ascending within one.
    uint32_t *buckets; // bucket_mask + 2 offsets into places
    uint32_t *places;
    uint32_t bucket_mask;
    // Made when first needed: count + 1 hashes of all lines above, at a level.
    uint32_t *sums[EDIT_LEVELS];
};

// Lines of an edit: all of them; the old ones, which are kept or removed; or the new ones, which are kept or added.
struct edit_side {
    struct edit_line *lines; // owned; their text is the diff's
    uint32_t count;
};

struct edit_body {
    struct edit_side all, old, new;
    uint32_t prefix, suffix; // lines of context at its ends
    bool bare;               // a line of context had lost its blank
};

// Fills *file with the lines of bytes, which it borrows. keeps_mark: a byte order mark is no part of the first line. 0,
// or -1 when memory is out; the caller frees it all the same.
int edit_split(struct edit_file *file, const char *bytes, size_t size, bool keeps_mark);
void edit_file_free(struct edit_file *file);

// Make the index, and the sums of a level, unless they are there. 0, or -1 when memory is out.
int edit_index(struct edit_file *file);
int edit_sum(struct edit_file *file, enum edit_level level);

// Frees what was made for searches: a large file has millions of lines.
void edit_drop_index(struct edit_file *file);

// The lines of an indexed file that may equal a line at any level, by number.
const uint32_t *edit_places(const struct edit_file *file, struct edit_line line, uint32_t *count);

// Goes on with a hash of lines by one more. It is the same for lines that are equal at the level.
uint32_t edit_add_hash(uint32_t hash, struct edit_line line, enum edit_level level);

// What a hash of some lines is multiplied by if so many more follow: so the hash of lines 10 to 20 is the sum up to 20
// less the sum up to 10 times the factor of 10 lines (Rabin and Karp).
uint32_t edit_hash_factor(uint32_t count);

struct edit_line edit_line_at(const struct edit_file *file, uint32_t number);

// Whether they are equal at the level. At EDIT_EXACT a newline that one of them lacks is a difference; above it, only
// one that the file's line has and the edit's lacks.
bool edit_line_equal(struct edit_line there, struct edit_line wanted, enum edit_level level);

// The blanks that a line begins with.
uint32_t edit_indent(struct edit_line line);

static inline bool edit_ends_cr(struct edit_line line)
{
    return line.size && line.text[line.size - 1] == '\r';
}

// A line without what the level does not compare: blanks and CR at its end, its indentation.
struct edit_line edit_trim(struct edit_line line, enum edit_level level);

// What a line of a hunk is, by its first byte: ' ', '-', '+'; '\\' for "\\ No newline"; 0: none of these. A blank line
// is context that lost its blank.
char edit_line_kind(const char *at, const char *stop);

// Fills the body, which is used again, with a hunk's lines. 0, or -1 when memory is out.
int edit_body_read(struct edit_body *body, const char *text, const char *end, enum edit_ends ends);
void edit_body_free(struct edit_body *body);

#endif
