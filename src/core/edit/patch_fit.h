// SPDX-License-Identifier: Apache-2.0
// What the files that fit hunks into a file share, and nobody else: a file as lines (patch_image.c), where a hunk fits
// (patch_find.c, patch_lines.c), and why it does not (patch_explain.c).
//
// Lines are numbered from 0 here.
#ifndef SBA_CORE_PATCH_FIT_H
#define SBA_CORE_PATCH_FIT_H

#include "core/edit/patch.h"

// How line ends are compared: as bytes; or CR LF and LF as the same, and what is added gets the file's.
enum patch_ends { PATCH_ENDS_EXACT, PATCH_ENDS_CRLF, PATCH_ENDS_LF };

struct patch_image {
    const char *bytes; // not owned
    uint32_t *starts;  // count + 1 offsets
    uint32_t count;
    uint32_t crlf; // lines that end in CR LF
    uint32_t lf;   // in LF alone
    enum patch_ends ends;
    // The index, made when first needed: line numbers by hash, ascending within one.
    uint32_t *hashes;  // of each line
    uint32_t *buckets; // bucket_mask + 2 offsets into places
    uint32_t *places;
    uint32_t bucket_mask;
};

// One line of a side of a hunk, or of a file.
struct patch_text {
    const char *text; // without its end
    uint32_t size;
    bool newline;
};

struct patch_hunk_line {
    struct patch_text text;
    uint32_t hash; // valid once hashed
    char kind;     // ' ', '-' or '+'
};

// One side: context and either what is taken away or what is added.
struct patch_side {
    struct patch_hunk_line **lines;
    uint32_t count;
    uint32_t prefix, suffix; // lines of context at its ends
};

struct patch_body {
    struct patch_hunk_line *lines;
    uint32_t count;
    struct patch_hunk_line **pointers; // room for both sides
    struct patch_side old, new;
    bool hashed;
    bool bare; // a line of context had lost its blank
};

// These return 0, or -1 when memory is out. The body is used again from hunk to hunk.
int patch_image_split(struct patch_image *image, const char *bytes, size_t size);
int patch_image_index(struct patch_image *image);
int patch_body_read(struct patch_body *body, const struct patch *patch, const struct patch_hunk *hunk,
                    enum patch_ends ends);

void patch_image_free(struct patch_image *image);
void patch_body_free(struct patch_body *body);

struct patch_text patch_image_line(const struct patch_image *image, uint32_t number);

bool patch_text_equal(struct patch_text one, struct patch_text other);

// Whether a line of a file is the wanted one, but for blanks at its end or the newline that the file's last line lacks.
bool patch_text_equal_loosely(struct patch_text there, struct patch_text wanted);

// The same for lines that are equal, loosely or not.
uint32_t patch_text_hash(struct patch_text text);

// The search for one hunk. A place is the line where the side's first line would stand. It may be below 0 or past the
// end.
struct patch_search {
    const struct patch *patch;
    const struct patch_file *file;
    const struct patch_hunk *hunk;
    uint32_t number; // of the hunk in its file, from 1
    struct patch_image *image;
    struct patch_body *body;
    const struct patch_side *side;
    int64_t guess;
    uint32_t start; // of the side as its @@ line says: 0 and 1 may belong to the beginning
    uint32_t floor; // nothing above this line is touched: it is behind the last hunk
    bool loose;     // lines are compared as patch_text_equal_loosely has it
    // Found:
    int64_t place;
    uint32_t head, tail; // lines left out at the side's ends
};

// Finds the place with at most fuzz lines of context left out. 1 found, 0 not, -1 and *error: no memory, time is up.
int patch_find(struct patch_search *search, uint32_t fuzz, struct error *error);

// Finds the only place from first to last, whatever the floor. 1 found; 0 not; 2 there are more, *other is one; -1 and
// *error: time is up, no memory. A side without lines is nowhere.
int patch_find_only(struct patch_search *search, int64_t first, int64_t last, int64_t *other, struct error *error);

// The place at which most of the side's lines are found, *matching says how many; -1: none is anywhere, or no memory.
// It tries a bounded number of places and compares a bounded number of lines.
int64_t patch_find_nearest(struct patch_search *search, uint32_t *matching);

// How many of the side's lines stand where they would at place; *first is the first that does not.
uint32_t patch_count_matching(const struct patch_search *search, int64_t place, uint32_t *first);

// Finds the only place of the hunk by its lines alone: first as they are (if the hunk has no numbers), then loosely. 1
// found, and *tolerated says how; 0 not; -1 and *error: patch_ambiguous, already_applied, patch_mismatch and the errors
// of patch_find.
int patch_find_by_lines(struct patch_search *search, unsigned *tolerated, struct error *error);

// Fills error: already_applied where the hunk's new side is there, else patch_mismatch with the hunk, the first line
// that differs, and the place that fits best. Returns -1.
int patch_explain_mismatch(struct patch_search *search, struct error *error);

// Fills error with patch_ambiguous for a hunk that fits in two places. Returns -1.
int patch_explain_ambiguous(const struct patch_search *search, int64_t place, int64_t other, struct error *error);

// Whether the file holds just what its one hunk, which only adds, would make.
bool patch_is_as_added(const struct patch *patch, const struct patch_file *file, const struct patch_image *image);

// Fills error for a file that is there although the diff says it is new: already_applied where it is as the diff would
// make it, else already_exists. Returns -1.
int patch_explain_exists(const struct patch *patch, const struct patch_file *file, const struct patch_image *image,
                         struct error *error);

#endif
