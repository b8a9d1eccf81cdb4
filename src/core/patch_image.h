// SPDX-License-Identifier: Apache-2.0
// A file as lines, and the old and new side of a hunk, ready to be compared.
//
// Lines are numbered from 0 here. Functions that return int give 0, or -1 when memory is out.
#ifndef SBA_CORE_PATCH_IMAGE_H
#define SBA_CORE_PATCH_IMAGE_H

#include "core/patch.h"
#include "core/patch_reader.h"

// How line ends are taken: as bytes, or CR LF and LF as the same, and the file's used for what is added.
enum patch_ends { PATCH_ENDS_EXACT, PATCH_ENDS_CRLF, PATCH_ENDS_LF };

struct patch_image {
    const char *bytes; // not owned
    uint32_t *starts;  // count + 1 offsets
    uint32_t count;
    uint32_t crlf; // lines that end in CR LF
    uint32_t lf;   // in LF alone
    enum patch_ends ends;
    bool loose; // lines are compared as patch_text_equal_loosely has it
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
    uint32_t count, capacity;
    struct patch_hunk_line **pointers; // room for both sides
    struct patch_side old, new;
    bool hashed;
    bool bare; // a line of context had lost its blank
};

int patch_image_split(struct patch_image *image, const char *bytes, size_t size);
int patch_image_index(struct patch_image *image);
void patch_image_free(struct patch_image *image);
struct patch_text patch_image_line(const struct patch_image *image, uint32_t number);
bool patch_text_equal(struct patch_text one, struct patch_text other);
// Whether a line of a file is the wanted one, but for blanks at its end or the newline that the file's last line lacks.
bool patch_text_equal_loosely(struct patch_text there, struct patch_text wanted);

// The line as it is hashed where lines are compared loosely.
struct patch_text patch_text_loosen(struct patch_text text);
uint32_t patch_text_hash(struct patch_text text);

// The lines of a hunk; body is used again from hunk to hunk.
int patch_body_read(struct patch_body *body, const struct patch *patch, const struct patch_hunk *hunk,
                    enum patch_ends ends);
void patch_body_free(struct patch_body *body);

#endif
