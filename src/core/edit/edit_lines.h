// SPDX-License-Identifier: Apache-2.0
// What the files of edit share, and nobody else: a file and an edit as lines (edit_lines.c), and where an edit stands
// (edit_find.c). Lines are numbered from 0 here.
#ifndef SBA_CORE_EDIT_LINES_H
#define SBA_CORE_EDIT_LINES_H

#include "core/edit/edit.h"

// How lines are compared. CR LF and LF are the same from EDIT_TRAILING on.
enum edit_level { EDIT_EXACT, EDIT_TRAILING, EDIT_INDENTED, EDIT_LEVELS };

enum { EDIT_MARK = 3 }; // bytes of a byte order mark
extern const char edit_mark[];

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

// Lines of an edit: all of them, the old ones or the new ones.
struct edit_side {
    struct edit_line *lines;
    uint32_t count;
};

struct edit_body {
    struct edit_side all, old, new;
    uint32_t prefix, suffix; // lines of context at its ends
    bool bare;               // a line of context had lost its blank
};

// These return 0, or -1 when memory is out.
// keeps_mark: a byte order mark is no part of the first line.
int edit_split(struct edit_file *file, const char *bytes, size_t size, bool keeps_mark);
int edit_index(struct edit_file *file);
int edit_sum(struct edit_file *file, enum edit_level level);
void edit_file_free(struct edit_file *file);

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

bool edit_line_equal(struct edit_line there, struct edit_line wanted, enum edit_level level);

// The blanks that a line begins with.
uint32_t edit_indent(struct edit_line line);

static inline bool edit_ends_cr(struct edit_line line)
{
    return line.size && line.text[line.size - 1] == '\r';
}

// A line without blanks and CR at its end.
struct edit_line edit_trim_end(struct edit_line line);

// A line without what the level does not compare.
struct edit_line edit_trim(struct edit_line line, enum edit_level level);

// Fills the body, which is used again, with a hunk's lines.
int edit_body_read(struct edit_body *body, const char *text, const char *end, enum edit_ends ends);
void edit_body_free(struct edit_body *body);

struct edit_anchors; // edit_anchor.h

// The search for one edit. A place is the line where the side's first line would stand, in the file or outside.
struct edit_search {
    const struct edit_hunk *hunk;
    const struct edit_anchors *anchors; // NULL: there are none
    struct edit_file *file;
    const struct edit_body *body;
    const struct edit_side *side; // the one that is looked for
    int64_t guess;
    uint32_t floor; // the edit before ends here
    enum edit_level level;
    uint32_t work; // lines that were compared since the interrupt was asked for
    // Found:
    int64_t place, other;
    uint32_t head, tail; // lines left out at the side's ends
    uint32_t missing;    // where it stands nowhere: the anchor that the file lacks
};

// How the indentation of a place differs from an edit's on all lines: it has text more, or less, or size blanks of the
// edit stand for a tab.
struct edit_shift {
    enum { SHIFT_MORE, SHIFT_LESS, SHIFT_TABS } kind;
    const char *text;
    uint32_t size;
};

bool edit_find_shift(const struct edit_search *search, int64_t place, struct edit_shift *shift);

// How often a side stands in a file. Of EDIT_TWICE the places are place and other. EDIT_FAILED: and *error.
enum edit_found { EDIT_FAILED = -1, EDIT_NOWHERE, EDIT_ONCE, EDIT_TWICE };

// After work (search->work) on which more follows. -1 and *error if the job must stop.
int edit_ask_for_interrupt(struct edit_search *search, struct error *error);

// Finds the first place from first to last, whatever the floor, where the side stands: *place. EDIT_TWICE: it looks as
// if it stood at too many.
enum edit_found edit_find_first(struct edit_search *search, int64_t first, int64_t last, int64_t *place,
                                struct error *error);

// Finds the place of a hunk.
enum edit_found edit_find(struct edit_search *search, struct error *error);

// Finds where the new side stands already.
enum edit_found edit_find_new(const struct edit_search *search, int64_t *place, struct error *error);

// What was overlooked where the side was found.
unsigned edit_differences(const struct edit_search *search);

#endif
