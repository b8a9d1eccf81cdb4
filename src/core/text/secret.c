// SPDX-License-Identifier: Apache-2.0
// Finds secrets in text, see secret.h. One pass stops at each byte where a secret may begin; nearly all of a text is
// passed over. From there the text is read in each way it may be written, decoded character by character, until no
// secret is begun any more. The algorithm of Knuth, Morris and Pratt finds every secret in the decoded bytes.
#include "core/text/secret.h"

#include "core/text/secret_character.h"
#include "core/text/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_PART = 4 };

static const char redacted[] = "[redacted]";

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
    size_t *starts;             // owned; while a text is read: where in it each of the last decoded bytes stands
    unsigned char *decoded;     // owned; the first bytes of a text, decoded
    size_t longest;             // form, and the room in starts and decoded
    bool begins[1 << CHAR_BIT]; // first bytes of the forms
} lists[2];                     // secrets as they are, and in base64

// Whether a secret, or an escape, may begin with a byte, and with it and the byte after it: a bit for each pair.
static bool beginnings[1 << CHAR_BIT];
static unsigned char pairs[(1 << 2 * CHAR_BIT) / CHAR_BIT];

static unsigned pair(unsigned char byte, unsigned char next)
{
    return (unsigned)byte << CHAR_BIT | next;
}

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

bool secret_is_known(void)
{
    return lists[1].count > 0;
}

static struct character normalized(const struct form_list *list, int byte)
{
    struct character character = {.bytes = {(unsigned char)byte}, .size = 1};
    if (list == &lists[1])
        character_normalize_base64(&character);
    return character;
}

// Learns how the form may begin in a text.
static void add_beginnings(const struct form_list *list, const struct form *form)
{
    bool follows[1 << CHAR_BIT];
    for (int byte = 0; byte <= UCHAR_MAX; byte++) {
        struct character character = normalized(list, byte);
        follows[byte] = character.size == 0 || character.bytes[0] == form->bytes[1];
    }
    for (enum escape escape = PERCENT; escape < ESCAPES; escape++)
        follows[(unsigned char)escape_mark[escape]] = true;
    for (int byte = 0; byte <= UCHAR_MAX; byte++) {
        struct character character = normalized(list, byte);
        bool begins = character.size > 0 && character.bytes[0] == form->bytes[0],
             escapes = byte == escape_mark[PERCENT] || byte == escape_mark[JSON];
        beginnings[byte] |= begins || escapes;
        for (int next = 0; (begins || escapes) && next <= UCHAR_MAX; next++) {
            unsigned both = pair((unsigned char)byte, (unsigned char)next);
            if (escapes || follows[next])
                pairs[both / CHAR_BIT] |= (unsigned char)(1 << both % CHAR_BIT);
        }
    }
}

static int add_form(struct form_list *list, const char *bytes, size_t size)
{
    struct form form = {.bytes = malloc(size), .borders = malloc(size * sizeof(size_t)), .size = size};
    struct form *more = array_grow(list->forms, list->count, sizeof *more);
    if (more)
        list->forms = more;
    size_t longest = size > list->longest ? size : list->longest;
    size_t *starts = realloc(list->starts, longest * sizeof *starts);
    unsigned char *decoded = realloc(list->decoded, longest);
    if (starts)
        list->starts = starts;
    if (decoded)
        list->decoded = decoded;
    if (starts && decoded)
        list->longest = longest;
    if (!form.bytes || !form.borders || !more || !starts || !decoded) {
        free(form.bytes);
        free(form.borders);
        return -1;
    }
    memcpy(form.bytes, bytes, size);
    find_borders(&form);
    list->forms[list->count++] = form;
    list->begins[form.bytes[0]] = true;
    add_beginnings(list, &form);
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
    return 1;
}

// Bytes of the text that belong to a secret.
struct range {
    size_t start, end;
};

// A way to read the text.
struct way {
    enum escape escape;
    struct form_list *list;
    size_t next; // what stands before this place is read
};

// The search through one text. The fields from way on are those of the way in which it is read.
struct search {
    const char *text;
    size_t size;
    unsigned cuts;
    bool for_settled;
    size_t open;          // the first place of the text that is not settled
    bool weak_end;        // see `cut` of secret_settled
    struct range *hidden; // owned
    size_t hidden_count;
    bool is_out_of_memory;
    struct way *way;
    size_t count; // decoded bytes since the way was begun
    bool active;  // the last of them begin a form
};

static void hide(struct search *search, size_t start, size_t end)
{
    struct range *last = search->hidden_count ? &search->hidden[search->hidden_count - 1] : NULL;
    if (last && start < last->end && end > last->start) {
        last->start = start < last->start ? start : last->start;
        last->end = end > last->end ? end : last->end;
        return;
    }
    struct range *more = array_grow(search->hidden, search->hidden_count, sizeof *more);
    search->is_out_of_memory |= !more;
    if (!more)
        return;
    search->hidden = more;
    more[search->hidden_count++] = (struct range){start, end};
}

// Reads the character at `at`. False: there is none, or the end of a cut text may have torn it.
static bool read_character(const struct search *search, size_t at, struct character *character)
{
    if (at == search->size)
        return false;
    *character = character_read(search->text + at, search->size - at, search->way->escape);
    if (search->way->list == &lists[1])
        character_normalize_base64(character);
    return !(character->torn && search->cuts & SECRET_CUT_END);
}

// Where the last `size` decoded bytes begin in the text.
static size_t start_of(const struct search *search, size_t size)
{
    const struct form_list *list = search->way->list;
    return list->starts[(search->count - size) % list->longest];
}

// Reads a decoded byte of the character at `at`, which ends at `end`.
static void read_byte(struct search *search, unsigned char byte, size_t at, size_t end)
{
    struct form_list *list = search->way->list;
    if (!search->active && !list->begins[byte])
        return;
    list->starts[search->count++ % list->longest] = at;
    search->active = false;
    for (struct form *form = list->forms; form < list->forms + list->count; form++) {
        form->matched = advance(form, form->matched, byte);
        search->active |= form->matched > 0;
        if (form->matched == form->size)
            hide(search, start_of(search, form->size), end);
    }
}

// The text ends, or an escape that its end tore stands at `at`. The last decoded byte ends at `end`: finds the
// beginning of a secret that stands before it.
static void read_end(struct search *search, const struct form *form, size_t at, size_t end)
{
    bool at_line_end = search->way->list == &lists[1] && search->text[search->size - 1] == '\n';
    size_t begun = form->matched == form->size ? form->borders[form->size - 1] : form->matched;
    if (form->matched == form->size && at < search->size && !search->for_settled)
        hide(search, end - 1, search->size); // what was torn, with the secret before it
    if (begun >= LEAST_PART || (begun > 0 && search->for_settled && !at_line_end)) {
        size_t start = start_of(search, begun);
        if (!search->for_settled)
            hide(search, start, at < search->size ? search->size : end);
        else if (start < search->open)
            search->open = start;
    } else if (begun > 0) {
        search->weak_end = true;
    }
}

// Reads the text in one way from `at` on, until no form is begun.
static void read_from(struct search *search, size_t at)
{
    struct form_list *list = search->way->list;
    struct character character;
    size_t end = at;
    search->count = 0;
    search->active = false;
    do {
        if (!read_character(search, at, &character)) {
            for (size_t i = 0; search->active && i < list->count && search->cuts & SECRET_CUT_END; i++)
                read_end(search, &list->forms[i], at, end);
            if (at < search->open)
                search->open = at;
            for (size_t i = 0; i < list->count; i++)
                list->forms[i].matched = 0;
            search->way->next = search->size;
            return;
        }
        if (character.size > 0)
            end = at + character.length;
        for (size_t i = 0; i < character.size; i++)
            read_byte(search, character.bytes[i], at, end);
        at += character.length;
    } while (search->active);
    search->way->next = at;
}

// Decodes the text from `at` on, as far as a form may reach, once for all forms: there may be megabytes of blanks in
// it. starts says where each byte ends; 0 inside a character. Returns how many bytes there are; fewer than `longest`
// if the text ends.
static size_t decode_start(const struct search *search, size_t at)
{
    const struct form_list *list = search->way->list;
    struct character character;
    size_t count = 0;
    while (count < list->longest && read_character(search, at, &character)) {
        at += character.length;
        for (size_t i = 0; i < character.size && count < list->longest; i++, count++) {
            list->decoded[count] = character.bytes[i];
            list->starts[count] = i + 1 == character.size ? at : 0;
        }
    }
    return count;
}

// Where the form's bytes from `from` on end in the text, if it begins with them, or 0. A text that is cut may end
// before them. count: of its decoded bytes.
static size_t end_of_rest(const struct search *search, const struct form *form, size_t from, size_t count)
{
    const struct form_list *list = search->way->list;
    size_t rest = form->size - from, same = rest < count ? rest : count;
    if (memcmp(form->bytes + from, list->decoded, same) != 0)
        return 0;
    if (same == rest)
        return list->starts[rest - 1];
    return search->cuts & SECRET_CUT_END && same >= LEAST_PART ? search->size : 0;
}

static size_t end_of_longest_rest(const struct search *search, size_t at)
{
    const struct form_list *list = search->way->list;
    size_t longest = 0, count = decode_start(search, at);
    for (const struct form *form = list->forms; form < list->forms + list->count; form++)
        for (size_t from = 1; from + LEAST_PART <= form->size; from++) {
            size_t end = end_of_rest(search, form, from, count);
            longest = end > longest ? end : longest;
        }
    return longest;
}

// Hides the rest of a secret that a cut left at the start of the text, perhaps after the rest of a torn escape.
static void read_start(struct search *search)
{
    static const size_t longest_torn[ESCAPES] = {[PERCENT] = 2, [JSON] = 5};
    for (size_t at = 0; at <= longest_torn[search->way->escape] && at < search->size; at++) {
        size_t end = end_of_longest_rest(search, at);
        if (end > 0) {
            hide(search, 0, end);
            return;
        }
        if (search->text[at] != 'u' && character_hex(search->text + at, 1) < 0)
            return;
    }
}

// The first place from `at` on where a secret, or an escape, may begin.
static size_t next_beginning(const char *text, size_t size, size_t at)
{
    for (; at + 1 < size; at++) {
        unsigned char byte = (unsigned char)text[at];
        if (!beginnings[byte])
            continue;
        unsigned both = pair(byte, (unsigned char)text[at + 1]);
        if (pairs[both / CHAR_BIT] >> both % CHAR_BIT & 1)
            break;
    }
    return at;
}

static int by_start(const void *one, const void *other)
{
    const struct range *a = one, *b = other;
    return (a->start > b->start) - (a->start < b->start);
}

// Sorts the ranges and makes one of those that overlap.
static void merge(struct search *search)
{
    size_t count = 0;
    if (search->hidden_count > 0)
        qsort(search->hidden, search->hidden_count, sizeof *search->hidden, by_start);
    for (size_t i = 0; i < search->hidden_count; i++) {
        struct range next = search->hidden[i];
        if (count == 0 || next.start >= search->hidden[count - 1].end)
            search->hidden[count++] = next;
        else if (next.end > search->hidden[count - 1].end)
            search->hidden[count - 1].end = next.end;
    }
    search->hidden_count = count;
}

// Reads the text in every way. -1 if memory is out.
static int search_text(struct search *search)
{
    struct way ways[2 * ESCAPES];
    size_t count = 0;
    for (enum escape escape = AS_IS; escape < ESCAPES; escape++)
        if (escape == AS_IS || memchr(search->text, escape_mark[escape], search->size))
            for (int i = 0; i < 2; i++)
                ways[count++] = (struct way){escape, &lists[i], 0};
    search->open = search->size;
    for (size_t i = 0; i < count && search->cuts & SECRET_CUT_START; i++) {
        search->way = &ways[i];
        read_start(search);
    }
    // Too few bytes are left for a whole secret where the text's own end is this one.
    size_t last = search->cuts & SECRET_CUT_END ? 1 : SECRET_SHORTEST;
    for (size_t at = 0; at + last <= search->size; at++) {
        at = next_beginning(search->text, search->size, at);
        for (search->way = ways; search->way < ways + count; search->way++)
            if (search->way->next <= at)
                read_from(search, at);
    }
    merge(search);
    return search->is_out_of_memory ? -1 : 0;
}

size_t secret_settled(const char *text, size_t size, bool *cut)
{
    struct search search = {.text = text, .size = size, .cuts = SECRET_CUT_END, .for_settled = true};
    *cut = false;
    if (!secret_is_known() || size == 0)
        return size;
    size_t settled = search_text(&search) < 0 ? 0 : search.open;
    *cut = search.weak_end;
    for (size_t i = 0; i < search.hidden_count; i++)
        if (search.hidden[i].start < settled && settled < search.hidden[i].end)
            settled = search.hidden[i].start;
    free(search.hidden);
    return settled;
}

// Copies the text to `clean`, without what is hidden.
static int replace(const struct search *search, struct buffer *clean)
{
    size_t at = 0;
    for (size_t i = 0; i < search->hidden_count; i++) {
        const struct range *range = &search->hidden[i];
        if (buffer_append(clean, search->text + at, range->start - at) < 0 ||
            buffer_append(clean, redacted, sizeof redacted - 1) < 0)
            return -1;
        at = range->end;
    }
    return buffer_append(clean, search->text + at, search->size - at) < 0 ? -1 : 1;
}

int secret_redact_copy(const char *text, size_t size, unsigned cuts, struct buffer *clean)
{
    struct search search = {.text = text, .size = size, .cuts = cuts};
    if (!secret_is_known() || size < LEAST_PART)
        return 0;
    int outcome = search_text(&search);
    if (outcome == 0 && search.hidden_count > 0)
        outcome = replace(&search, clean);
    free(search.hidden);
    return outcome;
}

int secret_redact(struct buffer *text, unsigned cuts)
{
    cleanup_buffer struct buffer clean = {0};
    int outcome = secret_redact_copy(text->data, text->size, cuts, &clean);
    if (outcome <= 0)
        return outcome;
    struct buffer old = *text;
    *text = clean;
    clean = old;
    return outcome;
}
