// SPDX-License-Identifier: Apache-2.0
// Reads and sorts the names in a directory, see directory_names.h.
#include "core/files/directory_names.h"

#include "core/base/interrupt.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LISTING_SIZE = 64 * 1024, // of one getdents64
    NAME_ROOM = 64,           // of a name in it, if only the first are wanted
    SMALLEST_LISTING = 4096,
};

// As getdents64 lays it out.
struct listed {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

static uint64_t order_of(const char *name)
{
    uint64_t order = 0;
    for (int i = 0; i < 8; i++) {
        order = order << 8 | (unsigned char)*name;
        name += *name != '\0';
    }
    return order;
}

static bool is_before(const struct directory_name *a, const struct directory_name *b)
{
    return a->order != b->order ? a->order < b->order : strcmp(a->name, b->name) < 0;
}

// A merge sort; spare has room for half of the items. qsort of the C library calls memcpy for each item that it moves,
// which takes longer than everything else here together.
static void sort_items(struct directory_name *items, size_t count, struct directory_name *spare)
{
    size_t half = count / 2;
    if (half == 0)
        return;
    sort_items(items, half, spare);
    sort_items(items + half, count - half, spare);
    memcpy(spare, items, half * sizeof *items);
    for (size_t left = 0, right = half, to = 0; left < half; to++)
        items[to] = right < count && is_before(&items[right], &spare[left]) ? items[right++] : spare[left++];
}

static int sort_names(struct directory_names *names)
{
    if (names->count > names->capacity) {
        struct directory_name *items = realloc(names->items, (names->count + names->count / 2) * sizeof *items);
        if (!items)
            return -1;
        names->items = items;
        names->capacity = names->count;
    }
    const char *at = names->text.data;
    for (size_t i = 0; i < names->count; i++) {
        names->items[i] = (struct directory_name){order_of(at + 1), at + 1, (unsigned char)*at};
        at += strlen(at + 1) + 2;
    }
    sort_items(names->items, names->count, names->items + names->count);
    return 0;
}

static bool is_wanted(const char *name, bool hidden)
{
    if (*name != '.')
        return true;
    return hidden && name[1] && (name[1] != '.' || name[2]);
}

// Appends the wanted names of one getdents64.
static int take_listing(struct directory_names *names, const char *listing, long size, bool hidden)
{
    for (long at = 0; at < size;) {
        const struct listed *listed = (const void *)(listing + at);
        at += listed->size;
        if (!is_wanted(listed->name, hidden))
            continue;
        if (buffer_append(&names->text, &listed->type, strlen(listed->name) + 2) < 0) // the name is next to the type
            return -1;
        names->count++;
    }
    return 0;
}

// How much of a directory to read at once.
static size_t listing_size(size_t most)
{
    if (most == 0 || most > LISTING_SIZE / NAME_ROOM)
        return LISTING_SIZE;
    return most * NAME_ROOM < SMALLEST_LISTING ? SMALLEST_LISTING : most * NAME_ROOM;
}

int directory_names_read(struct directory_names *names, int fd, bool hidden, size_t most)
{
    static char listing[LISTING_SIZE] __attribute__((aligned(8)));
    long size;
    names->text.size = names->count = 0;
    while ((size = syscall(SYS_getdents64, fd, listing, listing_size(most))) > 0) {
        if (most && names->count >= most)
            break;
        if (interrupt_reason() != INTERRUPT_NONE) {
            errno = EINTR;
            return -1;
        }
        if (take_listing(names, listing, size, hidden) < 0) {
            errno = ENOMEM;
            return -1;
        }
    }
    if (size < 0)
        return -1;
    if (sort_names(names) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return size > 0;
}

void directory_names_free(struct directory_names *names)
{
    free(names->items);
    buffer_free(&names->text);
    *names = (struct directory_names){0};
}
