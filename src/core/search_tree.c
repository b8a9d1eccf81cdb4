// SPDX-License-Identifier: Apache-2.0
// Walks a tree to search its files, see search.h. Folders are opened by their whole confined path and closed before the
// walk goes down, so that depth costs no descriptors.
#include "core/cleanup.h"
#include "core/glob.h"
#include "core/interrupt.h"
#include "core/search_internal.h"
#include "core/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct walk {
    struct search_regex *regex;
    const struct workspace *workspace;
    const struct glob *include;
    struct search_scratch scratch;
    struct search_results *results;
    struct error *error;
    struct buffer path; // of what is in hand, relative to the workspace; "" is the workspace. A NUL follows it
    size_t start;       // size of the path that the search began at
};

struct entry {
    bool is_folder;
    char name[];
};

struct listing {
    struct entry **entries; // owned, each too
    size_t count, capacity;
};

static void listing_free(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->entries[i]);
    free(listing->entries);
}

static int listing_add(struct listing *listing, const char *name, bool is_folder)
{
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? listing->capacity * 2 : 32;
        struct entry **entries = realloc(listing->entries, capacity * sizeof *entries);
        if (!entries)
            return -1;
        listing->entries = entries;
        listing->capacity = capacity;
    }
    size_t size = strlen(name) + 1;
    struct entry *entry = malloc(sizeof *entry + size);
    if (!entry)
        return -1;
    entry->is_folder = is_folder;
    memcpy(entry->name, name, size);
    listing->entries[listing->count++] = entry;
    return 0;
}

// The byte after the name's first size ones, as it is in the paths below: a folder's name goes on with a slash.
static int byte_at(const struct entry *entry, size_t size)
{
    return entry->name[size] ? (unsigned char)entry->name[size] : entry->is_folder ? '/' : 0;
}

// Byte order of the paths: "a.c" comes before "a/b".
static int compare(const void *left, const void *right)
{
    const struct entry *a = *(struct entry *const *)left, *b = *(struct entry *const *)right;
    size_t same = 0;
    while (a->name[same] && a->name[same] == b->name[same])
        same++;
    return byte_at(a, same) - byte_at(b, same);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

// Puts a name at the path's end; leave takes it away. 0 or -1.
static int enter(struct walk *walk, const char *name)
{
    size_t size = walk->path.size;
    if ((size > 0 && buffer_append(&walk->path, "/", 1) < 0) ||
        buffer_append(&walk->path, name, strlen(name) + 1) < 0) {
        walk->path.size = size;
        return search_out_of_memory(walk->error);
    }
    walk->path.size--;
    return 0;
}

static void leave(struct walk *walk, size_t size)
{
    walk->path.size = size;
    walk->path.data[size] = '\0';
}

static unsigned char type_of(int folder, const struct dirent *entry)
{
    struct stat status;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type;
    if (fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return DT_UNKNOWN;
    return S_ISDIR(status.st_mode) ? DT_DIR : S_ISREG(status.st_mode) ? DT_REG : DT_UNKNOWN;
}

// Whether an entry of the folder in hand is to be searched: 1, 0, or -1. The glob comes before sorting and opening: it
// often leaves little.
static int is_wanted(struct walk *walk, unsigned char type, const char *name)
{
    if (type == DT_DIR)
        return !is_dots(name) && strcmp(name, ".git") != 0;
    if (type != DT_REG || !walk->include)
        return type == DT_REG;
    size_t size = walk->path.size;
    if (enter(walk, name) < 0)
        return -1;
    bool matches = glob_match(walk->include, walk->path.data);
    leave(walk, size);
    return matches;
}

static int list_entries(struct walk *walk, int folder, DIR *directory, struct listing *listing)
{
    for (struct dirent *entry; (entry = readdir(directory));) {
        unsigned char type = type_of(folder, entry);
        int wanted = is_wanted(walk, type, entry->d_name);
        if (wanted < 0)
            return -1;
        if (wanted && listing_add(listing, entry->d_name, type == DT_DIR) < 0)
            return search_out_of_memory(walk->error);
    }
    if (listing->count)
        qsort(listing->entries, listing->count, sizeof *listing->entries, compare);
    return 0;
}

// Lists what is wanted of the folder in hand.
static int list(struct walk *walk, int folder, struct listing *listing)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy < 0 ? NULL : fdopendir(copy);
    if (!directory) {
        cleanup_close(&copy);
        walk->results->files_unreadable++;
        return 0;
    }
    int result = list_entries(walk, folder, directory, listing);
    closedir(directory);
    return result;
}

// An error of the disk concerns this file; anything else ends the search.
static int pass_over_if_unreadable(struct walk *walk)
{
    if (strcmp(walk->error->code, "io_error") != 0)
        return -1;
    error_clear(walk->error);
    walk->results->files_unreadable++;
    return 0;
}

static int search_open_file(struct walk *walk, int fd)
{
    return search_descriptor(walk->regex, fd, walk->path.data, &walk->scratch, walk->results, walk->error);
}

// Searches a file in the folder.
static int search_entry(struct walk *walk, int folder, const char *name)
{
    struct stat status;
    cleanup_fd int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0) {
        walk->results->files_unreadable += errno != ENOENT && errno != ELOOP; // those came by a change just now
        return 0;
    }
    size_t size = walk->path.size;
    if (!S_ISREG(status.st_mode))
        return 0;
    if (enter(walk, name) < 0)
        return -1;
    int result = search_open_file(walk, fd);
    leave(walk, size);
    return result < 0 ? pass_over_if_unreadable(walk) : 0;
}

// Opens the folder in hand. Only the one that the search begins at may be a link.
static int open_folder(struct walk *walk)
{
    int no_link = walk->path.size > walk->start ? O_NOFOLLOW : 0;
    const char *path = walk->path.size ? walk->path.data : ".";
    return workspace_resolve(walk->workspace, path, O_PATH | O_DIRECTORY | no_link);
}

static int search_folder(struct walk *walk);

static int search_subfolder(struct walk *walk, const char *name)
{
    size_t size = walk->path.size;
    if (enter(walk, name) < 0)
        return -1;
    int result = search_folder(walk);
    leave(walk, size);
    return result;
}

// Searches the entries one by one. *folder is closed on the way down and opened again when a file needs it.
static int search_listing(struct walk *walk, const struct listing *listing, int *folder)
{
    int result = 0;
    for (size_t i = 0; i < listing->count && result == 0 && walk->results->limit == SEARCH_NO_LIMIT; i++) {
        const struct entry *entry = listing->entries[i];
        if (entry->is_folder) {
            cleanup_close(folder);
            *folder = -1;
            result = search_subfolder(walk, entry->name);
        } else {
            if (*folder < 0)
                *folder = open_folder(walk);
            result = search_entry(walk, *folder, entry->name);
        }
    }
    return result;
}

static int search_folder(struct walk *walk)
{
    if (interrupt_check(walk->error) < 0)
        return -1;
    struct listing listing = {0};
    cleanup_fd int folder = open_folder(walk);
    if (folder < 0) {
        walk->results->files_unreadable += errno != ENOENT && errno != ELOOP;
        return 0;
    }
    int result = list(walk, folder, &listing);
    if (result == 0)
        result = search_listing(walk, &listing, &folder);
    listing_free(&listing);
    return result;
}

// Searches the single file that the path names.
static int search_one_file(struct walk *walk, const char *path)
{
    struct stat status;
    cleanup_fd int fd = workspace_open_file(walk->workspace, path, &status, walk->error);
    if (fd < 0)
        return -1;
    if (walk->include && !glob_match(walk->include, walk->path.data))
        return 0;
    return search_open_file(walk, fd);
}

static int search_start(struct walk *walk, const char *path)
{
    cleanup_free char *relative = workspace_relative(walk->workspace, path, walk->error);
    if (!relative)
        return -1;
    size_t size = strlen(relative);
    if (size > 0 && relative[size - 1] == '/')
        relative[size - 1] = '\0';
    if (enter(walk, strcmp(relative, ".") == 0 ? "" : relative) < 0)
        return -1;
    walk->start = walk->path.size;
    cleanup_fd int folder = workspace_open_directory(walk->workspace, path, walk->error);
    if (folder >= 0)
        return search_folder(walk);
    if (walk->error->number != ENOTDIR)
        return -1;
    error_clear(walk->error);
    return search_one_file(walk, path);
}

int search_files(struct search_regex *regex, const struct workspace *workspace, const char *path,
                 const struct glob *include, struct search_results *results, struct error *error)
{
    struct walk walk = {.regex = regex, .workspace = workspace, .include = include, .results = results, .error = error};
    int result = search_start(&walk, path);
    buffer_free(&walk.scratch.buffer);
    buffer_free(&walk.path);
    return result;
}
