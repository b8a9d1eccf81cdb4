// SPDX-License-Identifier: Apache-2.0
// A reader of JSON that keeps little, see json_skim.h.
#include "core/files/json_skim.h"

#include "core/files/file_replace.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { DEEPEST = 256, END = -1, FAILED = -2 };

struct reader {
    int fd;
    int64_t at; // of block[0]
    size_t next, filled, copied;
    char *block;
    struct json_skim *skim;
    size_t most;
    const char *always;
    size_t value_text; // where the member's value begins in the text
    int64_t value_at;
    struct json_span name;
    bool leaves_out; // the member's value, which is too long
    unsigned depth;
    bool is_object[DEEPEST];
    struct error *error;
};

static int64_t position(const struct reader *r)
{
    return r->at + (int64_t)r->next;
}

static int fail(struct reader *r, const char *what)
{
    if (!r->error->code)
        error_set(r->error, "invalid_json", 0, "it is not JSON: %s at byte %lld", what,
                  (long long)(position(r) - r->skim->offset));
    return -1;
}

// Adds what was read since the last time to the text, unless it is left out.
static int copy(struct reader *r)
{
    struct buffer *text = &r->skim->text;
    size_t from = r->copied;
    r->copied = r->next;
    if (r->leaves_out)
        return 0;
    if (buffer_append(text, r->block + from, r->next - from) < 0)
        return error_set(r->error, "out_of_memory", 0, "no memory is left");
    if (r->value_text && r->is_object[0] && text->size - r->value_text > r->most) {
        r->leaves_out = true;
        text->size = r->value_text;
    }
    return 0;
}

static int fill(struct reader *r)
{
    enum { FIRST = 4096 }; // most lines are short
    if (copy(r) < 0)
        return FAILED;
    r->at += (int64_t)r->filled;
    size_t size = r->filled ? FILE_BLOCK : FIRST;
    r->next = r->copied = r->filled = 0;
    ssize_t got;
    do
        got = pread(r->fd, r->block, size, (off_t)r->at);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        error_system(r->error, errno, "cannot read");
        return FAILED;
    }
    r->filled = (size_t)got;
    return got ? 0 : END;
}

static int peek(struct reader *r)
{
    if (r->next == r->filled) {
        int ended = fill(r);
        if (ended)
            return ended;
    }
    return (unsigned char)r->block[r->next];
}

static int take(struct reader *r)
{
    int byte = peek(r);
    if (byte >= 0)
        r->next++;
    else if (byte == END && !r->error->code)
        error_set(r->error, "incomplete", 0, "it ends too early");
    return byte;
}

static int skip_blanks(struct reader *r)
{
    int byte;
    while ((byte = peek(r)) == ' ' || byte == '\t' || byte == '\n' || byte == '\r')
        r->next++;
    return byte;
}

// The bytes after the first of a character that is not ASCII (Unicode 15, table 3-7).
static int take_character(struct reader *r, int first)
{
    int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    int low = first == 0xE0   ? 0xA0
              : first == 0xF0 ? 0x90
                              : 0x80,
        high = first == 0xED   ? 0x9F
               : first == 0xF4 ? 0x8F
                               : 0xBF;
    if (first < 0xC2 || first > 0xF4)
        return fail(r, "a byte that is not UTF-8");
    for (; more > 0; more--, low = 0x80, high = 0xBF) {
        int byte = take(r);
        if (byte < low || byte > high)
            return fail(r, "a byte that is not UTF-8");
    }
    return 0;
}

static int take_escape(struct reader *r)
{
    int byte = take(r);
    if (byte == 'u') {
        for (int i = 0; i < 4; i++) {
            int digit = take(r);
            if (digit <= 0 || !strchr("0123456789abcdefABCDEF", digit))
                return fail(r, "an escape of less than four hex digits");
        }
        return 0;
    }
    return byte > 0 && strchr("\"\\/bfnrt", byte) ? 0 : fail(r, "an unknown escape");
}

static int take_string(struct reader *r)
{
    r->next++; // the quote
    for (;;) {
        while (r->next < r->filled) { // most bytes are plain
            unsigned char byte = (unsigned char)r->block[r->next];
            if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\')
                break;
            r->next++;
        }
        int byte = take(r), failed = 0;
        if (byte == '"')
            return 0;
        if (byte == '\\')
            failed = take_escape(r);
        else if (byte >= 0x80)
            failed = take_character(r, byte);
        else if (byte < 0x20)
            failed = fail(r, "a control character in a string");
        if (failed)
            return -1;
    }
}

static int take_digits(struct reader *r)
{
    int count = 0;
    for (int byte; (byte = peek(r)) >= '0' && byte <= '9'; count++)
        r->next++;
    if (count > 0)
        return 0;
    return peek(r) < 0 ? take(r) : fail(r, "a digit is missing");
}

static int take_number(struct reader *r)
{
    if (peek(r) == '-')
        r->next++;
    if (peek(r) == '0')
        r->next++;
    else if (take_digits(r) < 0)
        return -1;
    if (peek(r) == '.') {
        r->next++;
        if (take_digits(r) < 0)
            return -1;
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->next++;
        if (peek(r) == '+' || peek(r) == '-')
            r->next++;
        return take_digits(r);
    }
    return 0;
}

static int take_scalar(struct reader *r, int first)
{
    if (first == '"')
        return take_string(r);
    if (first == '-' || (first >= '0' && first <= '9'))
        return take_number(r);
    const char *word = first == 't' ? "true" : first == 'f' ? "false" : first == 'n' ? "null" : "";
    for (const char *at = word; *at; at++) {
        int byte = take(r);
        if (byte != *at)
            return byte < 0 ? -1 : fail(r, "an unknown word");
    }
    return *word ? 0 : fail(r, "no value");
}

static int take_name(struct reader *r)
{
    if (skip_blanks(r) != '"')
        return peek(r) < 0 ? take(r) : fail(r, "no member name");
    if (r->depth == 1) {
        if (copy(r) < 0)
            return -1;
        r->name.name = r->skim->text.size + 1;
    }
    if (take_string(r) < 0)
        return -1;
    if (r->depth == 1) {
        if (copy(r) < 0)
            return -1;
        r->name.name_size = r->skim->text.size - r->name.name - 1;
    }
    int byte = skip_blanks(r) < 0 ? END : take(r);
    return byte == ':' ? 0 : byte < 0 ? take(r) : fail(r, "no colon");
}

static int begin_member(struct reader *r)
{
    if (copy(r) < 0)
        return -1;
    r->value_text = r->skim->text.size;
    r->value_at = position(r);
    return 0;
}

static int end_member(struct reader *r)
{
    struct json_skim *skim = r->skim;
    if (copy(r) < 0)
        return -1;
    const char *name = skim->text.data + r->name.name;
    bool is_named = r->is_object[0] && r->always && strlen(r->always) == r->name.name_size &&
                    !memcmp(name, r->always, r->name.name_size);
    if (r->leaves_out || is_named) {
        struct json_span *grown = array_grow(skim->spans, skim->count, sizeof *grown);
        skim->text.size = r->value_text;
        if (!grown || buffer_append(&skim->text, "null", 4) < 0)
            return error_set(r->error, "out_of_memory", 0, "no memory is left");
        skim->spans = grown;
        r->name.offset = r->value_at;
        r->name.size = position(r) - r->value_at;
        grown[skim->count++] = r->name;
    }
    r->leaves_out = false;
    r->value_text = 0;
    return 0;
}

// What stands after a value: returns 1 where another one follows, 0 at the end of the outermost.
static int after_value(struct reader *r)
{
    while (r->depth > 0) {
        if (r->depth == 1 && r->value_text && end_member(r) < 0)
            return -1;
        int byte = skip_blanks(r) < 0 ? END : take(r);
        if (byte == ',')
            return r->is_object[r->depth - 1] && take_name(r) < 0 ? -1 : 1;
        if (byte != (r->is_object[r->depth - 1] ? '}' : ']'))
            return byte < 0 ? take(r) : fail(r, "neither a comma nor the end");
        r->depth--;
    }
    return 0;
}

// The opening bracket, which was seen: returns 1 where its first value follows, 0 where it is empty.
static int open_container(struct reader *r, bool is_object)
{
    if (r->depth == DEEPEST)
        return error_set(r->error, "too_deep", 0, "nested deeper than %d levels", DEEPEST);
    r->next++;
    if (skip_blanks(r) == (is_object ? '}' : ']')) {
        r->next++;
        return 0;
    }
    r->is_object[r->depth++] = is_object;
    return is_object && take_name(r) < 0 ? -1 : 1;
}

static int take_value(struct reader *r)
{
    for (int more = 1; more;) {
        int first = skip_blanks(r);
        if (first < 0)
            return take(r);
        if (r->depth == 1 && begin_member(r) < 0)
            return -1;
        bool opens = first == '{' || first == '[';
        int inside = opens ? open_container(r, first == '{') : take_scalar(r, first);
        more = inside > 0 ? 1 : inside < 0 ? -1 : after_value(r);
        if (more < 0)
            return -1;
    }
    return copy(r);
}

int json_skim(int fd, int64_t at, size_t most, const char *always, struct json_skim *skim, struct error *error)
{
    static char block[FILE_BLOCK]; // larger than some stacks; only the main thread is here
    struct reader r = {
        .fd = fd, .at = at, .block = block, .skim = skim, .most = most, .always = always, .error = error};
    int first = skip_blanks(&r);
    if (first < 0)
        return first == END ? error_set(error, "end", 0, "the end of the file") : -1;
    r.copied = r.next;
    skim->text.size = 0;
    skim->offset = position(&r);
    if (take_value(&r) < 0)
        return error->code ? -1 : error_set(error, "incomplete", 0, "it ends too early");
    skim->end = position(&r);
    return 0;
}

void json_skim_free(struct json_skim *skim)
{
    buffer_free(&skim->text);
    free(skim->spans);
    *skim = (struct json_skim){0};
}
