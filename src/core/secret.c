// SPDX-License-Identifier: Apache-2.0
// Finds secrets in text, see secret.h. The text is decoded character by character, once for each way of escaping. The
// algorithm of Knuth, Morris and Pratt finds every secret in the decoded bytes. The places of all are marked, then
// replaced at once.
#include "core/secret.h"

#include "core/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_PART = 4, LONGEST_UTF8 = 4 };

enum escape { AS_IS, PERCENT, JSON, ESCAPES };

static const char redacted[] = "[redacted]";
static const char escape_mark[ESCAPES] = {[PERCENT] = '%', [JSON] = '\\'};

// A secret, or the base64 characters that it alone decides.
struct form {
    unsigned char *bytes; // owned
    size_t *borders;      // owned; for each prefix, the length of its longest border (as KMP needs it)
    size_t size;
    size_t matched; // while a text is read: how many bytes of the form it ends with
};

static struct form_list {
    struct form *forms;
    size_t count;
    bool begins[1 << CHAR_BIT], follows[1 << CHAR_BIT]; // first and second bytes of the forms
    struct kind {
        bool begins, follows, wraps;
    } kinds[ESCAPES][1 << CHAR_BIT]; // of a text's bytes: whether a form, or an escape, may begin, or go on
} lists[2];                          // secrets as they are, and in base64

static size_t advance(const struct form *form, size_t matched, unsigned char byte)
{
    while (matched > 0 && (matched == form->size || form->bytes[matched] != byte))
        matched = form->borders[matched - 1];
    return matched + (form->bytes[matched] == byte);
}

// Fills in the borders of the form, from its bytes.
static void find_borders(struct form *form)
{
    form->borders[0] = 0;
    for (size_t i = 1; i < form->size; i++)
        form->borders[i] = advance(form, form->borders[i - 1], form->bytes[i]);
}

static int add_form(struct form_list *list, const char *bytes, size_t size)
{
    struct form form = {.bytes = malloc(size), .borders = malloc(size * sizeof(size_t)), .size = size};
    struct form *more = array_grow(list->forms, list->count, sizeof *more);
    if (more)
        list->forms = more;
    if (!form.bytes || !form.borders || !more) {
        free(form.bytes);
        free(form.borders);
        return -1;
    }
    memcpy(form.bytes, bytes, size);
    find_borders(&form);
    list->forms[list->count++] = form;
    list->begins[form.bytes[0]] = list->follows[form.bytes[1]] = true;
    return 0;
}

// Adds the base64 of the secret when `before` bytes, modulo 3, come before it.
static int add_base64(const char *bytes, size_t size, size_t before)
{
    cleanup_buffer struct buffer shifted = {0}, encoded = {0};
    if (buffer_append(&shifted, "\0\0", before) < 0 || buffer_append(&shifted, bytes, size) < 0 ||
        text_base64_encode(shifted.data, shifted.size, &encoded) < 0)
        return -1;
    size_t first = (before * 8 + 5) / 6, end = (before + size) * 8 / 6;
    return add_form(&lists[1], encoded.data + first, end - first);
}

bool secret_is_known(void)
{
    return lists[1].count > 0;
}

// A character of the text, decoded.
struct character {
    unsigned char bytes[LONGEST_UTF8];
    size_t size;   // 0: it only wraps a line of base64
    size_t length; // in the text
    bool torn;     // it is the beginning of an escape, and the text ends
};

// The value of so many hex digits, or -1.
static long hex(const char *digits, size_t count)
{
    long value = 0;
    for (size_t i = 0; i < count; i++) {
        const char *all = "0123456789abcdef0123456789ABCDEF", *digit = digits[i] ? strchr(all, digits[i]) : NULL;
        if (!digit)
            return -1;
        value = value << 4 | ((digit - all) & 15);
    }
    return value;
}

static void set_code_point(struct character *character, long code)
{
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    character->size = size;
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        character->bytes[i] = (unsigned char)(0x80 | (code & 0x3F));
    character->bytes[0] = (unsigned char)(size == 1 ? code : leads[size] | code);
}

// Decodes \uXXXX, or a pair of surrogates.
static void decode_unicode(const char *text, size_t left, struct character *character)
{
    character->torn = left < 6;
    long code = character->torn ? -1 : hex(text + 2, 4);
    if (code < 0)
        return;
    character->length = 6;
    long low = code >> 10 == 0xD8 >> 2 && left >= 12 && text[6] == '\\' && text[7] == 'u' ? hex(text + 8, 4) : -1;
    if (low >> 10 == 0xDC >> 2) {
        character->length = 12;
        code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF);
    }
    set_code_point(character, code);
}

static void decode_json(const char *text, size_t left, struct character *character)
{
    static const char names[] = "bfnrt", controls[] = "\b\f\n\r\t";
    character->torn = left < 2;
    if (character->torn)
        return;
    if (text[1] == 'u') {
        decode_unicode(text, left, character);
        return;
    }
    const char *name = text[1] ? strchr(names, text[1]) : NULL;
    character->bytes[0] = (unsigned char)(name ? controls[name - names] : text[1]);
    character->length = 2;
}

static void decode_percent(const char *text, size_t left, struct character *character)
{
    character->torn = left < 3;
    if (character->torn || hex(text + 1, 2) < 0)
        return;
    character->bytes[0] = (unsigned char)hex(text + 1, 2);
    character->length = 3;
}

static bool wraps_base64(unsigned char byte)
{
    return byte == '\n' || byte == '\r' || byte == '\t' || byte == ' ';
}

// Makes a byte of base64 one of the standard alphabet, and leaves out what only wraps lines.
static void normalize_base64(struct character *character)
{
    unsigned char *byte = character->bytes;
    if (wraps_base64(*byte))
        character->size = 0;
    else if (*byte == '-')
        *byte = '+';
    else if (*byte == '_')
        *byte = '/';
}

static void find_kinds(struct form_list *list, enum escape escape)
{
    for (int byte = 0; byte <= UCHAR_MAX; byte++) {
        struct character character = {.bytes = {(unsigned char)byte}, .size = 1};
        if (list == &lists[1])
            normalize_base64(&character);
        bool wraps = character.size == 0, escapes = escape != AS_IS && byte == escape_mark[escape];
        list->kinds[escape][byte] = (struct kind){
            .begins = escapes || (!wraps && list->begins[character.bytes[0]]),
            .follows = escapes || wraps || list->follows[character.bytes[0]],
            .wraps = wraps,
        };
    }
}

int secret_add(const char *bytes, size_t size)
{
    if (size < SECRET_SHORTEST)
        return 0;
    for (size_t i = 0; i < lists[0].count; i++)
        if (lists[0].forms[i].size == size && memcmp(lists[0].forms[i].bytes, bytes, size) == 0)
            return 1;
    for (size_t before = 0; before < 3; before++)
        if (add_base64(bytes, size, before) < 0)
            return -1;
    if (add_form(&lists[0], bytes, size) < 0)
        return -1;
    for (enum escape escape = AS_IS; escape < ESCAPES; escape++) {
        find_kinds(&lists[0], escape);
        find_kinds(&lists[1], escape);
    }
    return 1;
}

// Marks of a byte.
enum {
    HIDDEN = 1, // it belongs to a secret,
    JOINED = 2, // and so does the byte before it
    OPEN = 4,   // a secret may begin here that goes on after the text
};

// The search through one text. The fields from escape on are those of one way to read it.
struct search {
    const char *text;
    size_t size;
    unsigned cuts;
    bool for_settled;
    size_t open;          // the first place of the text that is not settled
    bool weak_end;        // see `cut` of secret_settled
    unsigned char *marks; // of the text's bytes
    bool hidden;          // some are
    enum escape escape;
    struct form_list *list;
    unsigned char *decoded; // marks of the bytes that it stands for; 0 before and after
    size_t count;           // of them
    bool active;            // the last of them begin a form
    bool found;
};

static void hide(unsigned char *marks, size_t at, size_t size)
{
    marks[at] |= HIDDEN;
    memset(marks + at + 1, HIDDEN | JOINED, size - 1);
}

// Reads the character at `at`; an escape that is malformed stands for itself. False: there is none, or the end of a cut
// text may have torn it.
static bool read_character(const struct search *search, size_t at, struct character *character)
{
    const char *text = search->text + at;
    size_t left = search->size - at;
    if (left == 0)
        return false;
    character->bytes[0] = (unsigned char)*text;
    character->size = character->length = 1;
    character->torn = false;
    if (search->escape == PERCENT && *text == '%')
        decode_percent(text, left, character);
    else if (search->escape == JSON && *text == '\\')
        decode_json(text, left, character);
    if (search->list == &lists[1])
        normalize_base64(character);
    return !(character->torn && search->cuts & SECRET_CUT_END);
}

// Passes over bytes that begin nothing; nearly all of a text are. Returns where it stopped.
static size_t pass_plain(struct search *search, size_t at)
{
    const struct kind *kinds = search->list->kinds[search->escape];
    const unsigned char *text = (const unsigned char *)search->text,
                        escape = (unsigned char)escape_mark[search->escape];
    size_t size = search->size, wraps = 0, begun = at;
    for (; at < size; at++) {
        bool begins = kinds[text[at]].begins;
        if (begins && (text[at] == escape || at + 1 == size || kinds[text[at + 1]].follows))
            break;
        wraps += kinds[text[at]].wraps;
    }
    search->count += at - begun - wraps;
    return at;
}

static void read_byte(struct search *search, unsigned char byte)
{
    struct form_list *list = search->list;
    search->count++;
    if (!search->active && !list->begins[byte])
        return;
    search->active = false;
    for (struct form *form = list->forms; form < list->forms + list->count; form++) {
        form->matched = advance(form, form->matched, byte);
        search->active |= form->matched > 0;
        if (form->matched == form->size) {
            hide(search->decoded, search->count - form->size, form->size);
            search->found = true;
        }
    }
}

// Marks the beginning of a secret that the text ends with.
static void read_end(struct search *search, const struct form *form)
{
    bool at_line_end = search->list == &lists[1] && search->text[search->size - 1] == '\n';
    size_t begun = form->matched == form->size ? form->borders[form->size - 1] : form->matched;
    if (begun >= LEAST_PART || (begun > 0 && search->for_settled && !at_line_end)) {
        if (search->for_settled)
            search->decoded[search->count - begun] |= OPEN;
        else
            hide(search->decoded, search->count - begun, begun);
        search->found = true;
    } else if (begun > 0) {
        search->weak_end = true;
    }
}

// Where the form's bytes from `from` on end in the text, if they stand at `at`, or 0. A text that is cut may end before
// them.
static size_t end_of_rest(const struct search *search, const struct form *form, size_t from, size_t at)
{
    struct character character;
    size_t i = from;
    for (; i < form->size && read_character(search, at, &character); at += character.length)
        for (size_t j = 0; j < character.size; j++)
            if (i == form->size || form->bytes[i++] != character.bytes[j])
                return 0;
    if (i == form->size)
        return at;
    return search->cuts & SECRET_CUT_END && i - from >= LEAST_PART ? search->size : 0;
}

static size_t end_of_longest_rest(const struct search *search, size_t at)
{
    size_t longest = 0;
    const struct form_list *list = search->list;
    for (const struct form *form = list->forms; form < list->forms + list->count; form++)
        for (size_t from = 1; from + LEAST_PART <= form->size; from++) {
            size_t end = end_of_rest(search, form, from, at);
            longest = end > longest ? end : longest;
        }
    return longest;
}

// Hides the rest of a secret that a cut left at the start of the text, perhaps after the rest of a torn escape.
static void read_start(struct search *search)
{
    static const size_t longest_torn[ESCAPES] = {[PERCENT] = 2, [JSON] = 5};
    for (size_t at = 0; at <= longest_torn[search->escape] && at < search->size; at++) {
        size_t end = end_of_longest_rest(search, at);
        if (end > 0) {
            hide(search->marks, 0, end);
            search->hidden = true;
            return;
        }
        if (search->text[at] != 'u' && hex(search->text + at, 1) < 0)
            return;
    }
}

// Copies the marks of the decoded bytes to the text. A cut may have torn what stands from `end` on.
static void copy_marks(struct search *search, size_t end)
{
    struct character character;
    const unsigned char *next = search->decoded, *last = next + search->count - 1;
    for (size_t at = 0; at < end; at += character.length) {
        read_character(search, at, &character);
        unsigned char mark = character.size == 0 && next <= last && *next & JOINED ? HIDDEN | JOINED : 0;
        for (size_t i = 0; i < character.size; i++, next++)
            mark = mark ? mark : *next;
        if (mark & OPEN && at < search->open)
            search->open = at;
        if (mark & HIDDEN) {
            search->hidden = true;
            search->marks[at] |= mark;
            memset(search->marks + at + 1, HIDDEN | JOINED, character.length - 1);
        }
    }
    if (end < search->size && *last & HIDDEN && !search->for_settled)
        memset(search->marks + end, HIDDEN | JOINED, search->size - end);
    memset(search->decoded, 0, search->count);
}

static void read_text(struct search *search)
{
    struct form_list *list = search->list;
    struct character character;
    size_t at = 0;
    search->count = 0;
    search->active = search->found = false;
    for (size_t i = 0; i < list->count; i++)
        list->forms[i].matched = 0;
    for (;; at += character.length) {
        if (!search->active)
            at = pass_plain(search, at);
        if (!read_character(search, at, &character))
            break;
        for (size_t i = 0; i < character.size; i++)
            read_byte(search, character.bytes[i]);
    }
    for (size_t i = 0; i < list->count && search->cuts & SECRET_CUT_END; i++)
        read_end(search, &list->forms[i]);
    if (search->found)
        copy_marks(search, at);
    if (at < search->open)
        search->open = at;
}

// Reads the text in every way. -1 if memory is out.
static int search_text(struct search *search)
{
    search->open = search->size;
    search->marks = calloc(2, search->size);
    if (!search->marks)
        return -1;
    search->decoded = search->marks + search->size;
    for (search->escape = AS_IS; search->escape < ESCAPES; search->escape++) {
        if (search->escape != AS_IS && !memchr(search->text, escape_mark[search->escape], search->size))
            continue;
        for (search->list = lists; search->list < lists + 2; search->list++) {
            if (search->cuts & SECRET_CUT_START)
                read_start(search);
            read_text(search);
        }
    }
    return 0;
}

size_t secret_settled(const char *text, size_t size, bool *cut)
{
    struct search search = {.text = text, .size = size, .cuts = SECRET_CUT_END, .for_settled = true};
    *cut = false;
    if (!secret_is_known() || size == 0)
        return size;
    if (search_text(&search) < 0)
        return 0;
    size_t settled = search.open;
    while (settled < size && search.marks[settled] & JOINED)
        settled--;
    *cut = search.weak_end;
    free(search.marks);
    return settled;
}

// Replaces what is marked.
static int replace(struct buffer *text, const unsigned char *marks)
{
    cleanup_buffer struct buffer out = {0};
    for (size_t i = 0, end; i < text->size; i = end) {
        bool hidden = marks[i] & HIDDEN;
        for (end = i + 1; end < text->size && (hidden ? marks[end] & JOINED : !marks[end]);)
            end++;
        if (buffer_append(&out, hidden ? redacted : &text->data[i], hidden ? sizeof redacted - 1 : end - i) < 0)
            return -1;
    }
    struct buffer old = *text;
    *text = out;
    out = old;
    return 1;
}

int secret_redact(struct buffer *text, unsigned cuts)
{
    struct search search = {.text = text->data, .size = text->size, .cuts = cuts};
    if (!secret_is_known() || text->size < LEAST_PART)
        return 0;
    int outcome = search_text(&search);
    if (outcome == 0 && search.hidden)
        outcome = replace(text, search.marks);
    free(search.marks);
    return outcome;
}
