// SPDX-License-Identifier: Apache-2.0
// Confines commands by Landlock, see confine.h. The interface of landlock(7) is declared here, because the headers of
// Debian 12 end at version 3.
#include "core/confine/confine.h"

#include "core/base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LANDLOCK_CREATE_RULESET = 444, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF }; // the same on every architecture
enum { VERSION_FLAG = 1, PATH_BENEATH = 1 };
enum { NETWORK_VERSION = 4, MOST_ENTRIES = 4096 };

enum access {
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    REMOVE_AND_MAKE = 0x1ff0, // remove directories and files; make devices, directories, files, sockets, pipes, links
    REFER = 1 << 13,          // rename and link from one directory to another
    TRUNCATE = 1 << 14,
    OF_A_FILE = WRITE_FILE | READ_FILE | TRUNCATE,
};

enum { SCOPE_ABSTRACT_SOCKETS = 1, SCOPE_SIGNALS = 2 };

struct ruleset_attributes {
    uint64_t access, network, scoped;
};

struct path_rule {
    uint64_t access;
    int32_t fd;
} __attribute__((packed));

static int rules = -1; // descriptor
static bool begun;

int confine_abi(void)
{
    static int known = -1;
    if (known < 0)
        known = (int)syscall(LANDLOCK_CREATE_RULESET, NULL, 0, VERSION_FLAG);
    return known = known > 0 ? known : 0;
}

void confine_begin(void)
{
    begun = true;
}

bool confine_is_on(void)
{
    return rules >= 0;
}

__attribute__((no_sanitize("address", "undefined"))) int confine_enter(void)
{
    return syscall(LANDLOCK_RESTRICT_SELF, rules, 0) < 0 ? errno : 0;
}

static uint64_t write_access(int abi)
{
    return WRITE_FILE | REMOVE_AND_MAKE | (abi >= CONFINE_RENAMES ? REFER : 0) |
           (abi >= CONFINE_TRUNCATES ? TRUNCATE : 0);
}

static int create(int abi, bool hides)
{
    const struct ruleset_attributes attributes = {
        .access = write_access(abi) | (hides ? READ_FILE : 0),
        .scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS,
    };
    size_t size = sizeof attributes;
    if (abi < NETWORK_VERSION)
        size = sizeof attributes.access;
    else if (abi < CONFINE_SIGNALS)
        size = sizeof attributes.access + sizeof attributes.network;
    return (int)syscall(LANDLOCK_CREATE_RULESET, &attributes, size, 0);
}

// Allows access to the file or directory of a descriptor, and to everything below.
static int allow(int ruleset, int fd, uint64_t access)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -1;
    const struct path_rule rule = {S_ISDIR(status.st_mode) ? access : access & OF_A_FILE, fd};
    return (int)syscall(LANDLOCK_ADD_RULE, ruleset, PATH_BENEATH, &rule, 0);
}

static int allow_writing(int ruleset, const char *path, int abi, struct error *error)
{
    cleanup_fd int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) // who cannot enter it cannot write it
        return 0;
    if (fd < 0 || allow(ruleset, fd, write_access(abi)) < 0)
        return error_system(error, errno, "cannot let commands write %s", path);
    return 0;
}

// Whether an entry of a directory is one of the files or directories, or leads to one. The directory has no slash at
// its end.
static bool leads_to(const char *const *files, const char *directory, const char *name)
{
    size_t length = strlen(directory), more = strlen(name);
    for (; *files; files++) {
        if (strncmp(*files, directory, length) != 0 || (*files)[length] != '/')
            continue;
        const char *rest = *files + length + 1;
        if (strncmp(rest, name, more) == 0 && (rest[more] == '/' || rest[more] == '\0'))
            return true;
    }
    return false;
}

// Allows reading the entries of a directory, except those that are hidden or lead there, and links, whose targets have
// their own rules.
static int allow_siblings(int ruleset, const char *path, const char *const *hidden, struct error *error)
{
    cleanup_directory DIR *directory = opendir(*path ? path : "/");
    if (!directory)
        return error_system(error, errno, "cannot list %s/", path);
    const struct dirent *entry;
    for (int count = 0; (entry = readdir(directory)); count++) {
        if (leads_to(hidden, path, entry->d_name) || strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0)
            continue;
        if (count >= MOST_ENTRIES)
            return error_set(error, "too_many_entries", 0, "%s/ has more than %d entries", path, MOST_ENTRIES);
        struct stat status;
        cleanup_fd int fd = openat(dirfd(directory), entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) < 0 || S_ISLNK(status.st_mode))
            continue; // it is gone meanwhile
        if (allow(ruleset, fd, READ_FILE) < 0)
            return error_system(error, errno, "cannot let commands read %s/%s", path, entry->d_name);
    }
    return 0;
}

// Landlock has no rule that forbids. To hide files and directories, allow everything beside them and beside their
// parent directories.
static int allow_reading_others(int ruleset, const char *const *hidden, struct error *error)
{
    for (const char *const *file = hidden; *file; file++) {
        if (access(*file, F_OK) < 0)
            return error_system(error, errno, "cannot look at %s", *file);
        if (**file != '/' || !(*file)[1])
            return error_set(error, "not_a_file", 0, "%s is not the absolute path of a file or directory", *file);
        cleanup_free char *directory = strdup(*file);
        if (!directory)
            return error_memory(error, "cannot hide %s", *file);
        for (char *slash; (slash = strrchr(directory, '/'));) {
            *slash = '\0';
            if (allow_siblings(ruleset, directory, hidden, error) < 0)
                return -1;
        }
    }
    return 0;
}

int confine_set_rules(const char *const *writable, const char *const *hidden, struct error *error)
{
    int abi = confine_abi();
    if (begun)
        return error_set(error, "too_late", 0, "a command has run: rules for commands come before the first");
    if (abi == 0)
        return error_set(error, "unsupported", 0, "the kernel has no Landlock, or does not let this process use it");
    cleanup_fd int ruleset = create(abi, *hidden != NULL);
    if (ruleset < 0)
        return error_system(error, errno, "cannot create Landlock rules");
    for (; *writable; writable++)
        if (allow_writing(ruleset, *writable, abi, error) < 0)
            return -1;
    if (allow_reading_others(ruleset, hidden, error) < 0)
        return -1;
    cleanup_close(&rules);
    rules = ruleset;
    ruleset = -1;
    return 0;
}
