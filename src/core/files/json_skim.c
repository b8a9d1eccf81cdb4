// SPDX-License-Identifier: Apache-2.0
// A reader of JSON that keeps little, see json_skim.h. Functions return -1, with an error, where the text is no JSON.
#include "core/files/json_skim.h"

#include "core/base/io.h"
#include "core/files/file.h"
#include "core/text/text.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum { DEEPEST = 200, END = -1, FAILED = -2 };

struct reader {
    int fd;
    int64_t at; // of block[0]
    size_t next, filled, copied;
    char *block;
    struct json_skim *skim;
    size_t most;
    const char *always;
    struct json_span member; // of the outermost object: the one that is read
    size_t value;            // where its value begins in the text; 0: no member is read
    bool is_left_out;        // it is too long
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

static int append(struct reader *r, const char *bytes, size_t size)
{
    int outcome = buffer_append(&r->skim->text, bytes, size);
    return outcome < 0 ? error_memory(r->error, "cannot read JSON") : 0;
}

// Adds what was read since the last time to the text, unless it is left out.
static int copy(struct reader *r)
{
    struct buffer *text = &r->skim->text;
    size_t from = r->copied;
    r->copied = r->next;
    if (!r->is_left_out && append(r, r->block + from, r->next - from) < 0)
        return -1;
    if (r->value && text->size - r->value > r->most) {
        r->is_left_out = true;
        text->size = r->value;
    }
    return 0;
}

static int next_block(struct reader *r)
{
    enum { FIRST = 4096 }; // most lines are short
    if (copy(r) < 0)
        return FAILED;
    size_t size = r->filled ? FILE_BLOCK : FIRST;
    r->at += (int64_t)r->filled;
    r->next = r->copied = r->filled = 0;
    ssize_t got = io_read(r->fd, r->block, size, (off_t)r->at);
    if (got < 0) {
        error_system(r->error, errno, "cannot read JSON");
        return FAILED;
    }
    r->filled = (size_t)got;
    return got ? 0 : END;
}

// The next byte, which stays; END or FAILED.
static int peek(struct reader *r)
{
    int ended = r->next == r->filled ? next_block(r) : 0;
    return ended ? ended : (unsigned char)r->block[r->next];
}

// The next byte. Where there is none, the value is incomplete.
static int take(struct reader *r)
{
    int byte = peek(r);
    if (byte >= 0)
        r->next++;
    else if (!r->error->code)
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

static bool skip(struct reader *r, const char *any)
{
    int byte = peek(r);
    bool is_one = byte > 0 && strchr(any, byte);
    r->next += is_one;
    return is_one;
}

// What follows the first byte of a character that is not ASCII.
static int take_character(struct reader *r, int first)
{
    unsigned char low, high;
    size_t length = text_sequence_length((unsigned char)first, &low, &high), i = 1;
    for (; i < length; i++, low = 0x80, high = 0xBF) {
        int byte = take(r);
        if (byte < low || byte > high)
            break;
    }
    return i == length ? 0 : fail(r, "a byte that is not UTF-8");
}

static int take_escape(struct reader *r)
{
    static const bool escapes[256] = {['"'] = true, ['\\'] = true, ['/'] = true, ['b'] = true, ['f'] = true,
                                      ['n'] = true, ['r'] = true,  ['t'] = true, ['u'] = true};
    int byte = take(r);
    if (byte < 0 || !escapes[byte])
        return fail(r, "an unknown escape");
    for (int digits = byte == 'u' ? 4 : 0; digits > 0; digits--) {
        int digit = take(r);
        if (digit <= 0 || !isxdigit(digit))
            return fail(r, "an escape of less than four hex digits");
    }
    return 0;
}

static int take_string(struct reader *r)
{
    r->next++; // the quote
    for (int failed = 0; !failed;) {
        r->next += text_plain_span(r->block + r->next, r->filled - r->next);
        int byte = take(r);
        if (byte == '"')
            return 0;
        if (byte >= 0x80)
            failed = take_character(r, byte);
        else if (byte == '\\')
            failed = take_escape(r);
        else if (byte < 0x20)
            failed = fail(r, "a control character in a string");
    }
    return -1;
}

static int take_digits(struct reader *r)
{
    if (!skip(r, "0123456789"))
        return peek(r) < 0 ? take(r) : fail(r, "a digit is missing");
    while (skip(r, "0123456789"))
        continue;
    return 0;
}

static int take_number(struct reader *r)
{
    skip(r, "-");
    if ((!skip(r, "0") && take_digits(r) < 0) || (skip(r, ".") && take_digits(r) < 0))
        return -1;
    if (!skip(r, "eE"))
        return 0;
    skip(r, "+-");
    return take_digits(r);
}

static int take_scalar(struct reader *r, int first)
{
    if (first == '"')
        return take_string(r);
    if (first == '-' || (first >= '0' && first <= '9'))
        return take_number(r);
    const char *word = first == 't' ? "true" : first == 'f' ? "false" : "null";
    for (; *word; word++) {
        int byte = take(r);
        if (byte != *word)
            return fail(r, "no value");
    }
    return 0;
}

static int take_name(struct reader *r)
{
    if (skip_blanks(r) != '"')
        return peek(r) < 0 ? take(r) : fail(r, "no member name");
    bool is_member = r->depth == 1;
    if (is_member && copy(r) < 0)
        return -1;
    size_t begin = r->skim->text.size + 1;
    if (take_string(r) < 0 || (is_member && copy(r) < 0))
        return -1;
    if (is_member)
        r->member = (struct json_span){.name = begin, .name_size = r->skim->text.size - begin - 1};
    skip_blanks(r);
    return take(r) == ':' ? 0 : fail(r, "no colon");
}

static int begin_value(struct reader *r)
{
    if (r->depth != 1 || !r->is_object[0])
        return 0;
    int outcome = copy(r);
    r->value = r->skim->text.size;
    r->member.offset = position(r);
    return outcome;
}

static int end_value(struct reader *r)
{
    struct json_skim *skim = r->skim;
    if (r->depth != 1 || !r->value)
        return 0;
    if (copy(r) < 0)
        return -1;
    bool is_always = r->always && strlen(r->always) == r->member.name_size &&
                     memcmp(skim->text.data + r->member.name, r->always, r->member.name_size) == 0;
    if (r->is_left_out || is_always) {
        struct json_span *grown = array_grow(skim->spans, skim->count, sizeof *grown);
        if (!grown)
            return error_memory(r->error, "cannot read JSON");
        r->member.size = position(r) - r->member.offset;
        skim->spans = grown;
        skim->spans[skim->count++] = r->member;
        skim->text.size = r->value;
        if (append(r, "null", sizeof "null" - 1) < 0)
            return -1;
    }
    r->is_left_out = false;
    r->value = 0;
    return 0;
}

// What stands after a value: 1 where another one follows, 0 at the end of the outermost.
static int after_value(struct reader *r)
{
    for (; r->depth > 0; r->depth--) {
        if (end_value(r) < 0)
            return -1;
        skip_blanks(r);
        bool is_object = r->is_object[r->depth - 1];
        int byte = take(r);
        if (byte == ',')
            return is_object && take_name(r) < 0 ? -1 : 1;
        if (byte != (is_object ? '}' : ']'))
            return fail(r, "neither a comma nor the end");
    }
    return 0;
}

// An object or array, of which the bracket was seen: 1 where its first value follows, 0 where it is empty.
static int open_container(struct reader *r, bool is_object)
{
    if (r->depth == DEEPEST)
        return error_set(r->error, "too_deep", 0, "nested deeper than %d levels", DEEPEST);
    r->next++;
    skip_blanks(r);
    if (skip(r, is_object ? "}" : "]"))
        return 0;
    r->is_object[r->depth++] = is_object;
    return is_object && take_name(r) < 0 ? -1 : 1;
}

static int take_value(struct reader *r)
{
    for (int more = 1; more > 0;) {
        int first = skip_blanks(r);
        if (first < 0)
            return take(r);
        if (begin_value(r) < 0)
            return -1;
        bool opens = first == '{' || first == '[';
        more = opens ? open_container(r, first == '{') : take_scalar(r, first);
        if (more == 0)
            more = after_value(r);
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
        return -1;
    skim->end = position(&r);
    return 0;
}

void json_skim_free(struct json_skim *skim)
{
    buffer_free(&skim->text);
    free(skim->spans);
    *skim = (struct json_skim){0};
}
