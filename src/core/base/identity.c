// SPDX-License-Identifier: Apache-2.0
// Hardens the process and changes its user, see identity.h.
#include "core/base/identity.h"

#include "core/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOT_DUMPABLE "closing the process to others (PR_SET_DUMPABLE)"

static bool succeeds(int outcome, const char *what)
{
    if (outcome < 0)
        fprintf(stderr, "cynode-sba: cannot start: %s: %s\n", what, strerror(errno));
    return outcome >= 0;
}

// Commands must not inherit descriptors that the node left open.
static void close_others_on_exec(void)
{
    enum { FIRST = 3, MOST = 65536 };
    if (syscall(SYS_close_range, FIRST, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    long limit = sysconf(_SC_OPEN_MAX); // Linux before 5.11
    for (int fd = FIRST; fd < (limit > 0 && limit < MOST ? limit : MOST); fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// Makes the relocated tables of the program read-only (RELRO). A dynamic linker does that itself; in a static PIE,
// musl's start code leaves them writable. -1: it cannot.
static int protect_relocated(struct dl_phdr_info *program, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &program->dlpi_phdr[i];
        uintptr_t start = program->dlpi_addr + header->p_vaddr, end = start + header->p_memsz;
        start &= ~(page - 1);
        end &= ~(page - 1);
        bool is_ours = header->p_type == PT_GNU_RELRO && end > start;
        if (is_ours && !succeeds(mprotect((void *)start, end - start, PROT_READ), "making relocated data read-only"))
            return -1;
    }
    return 1; // the first is the program; the rest are shared libraries
}

bool identity_harden(void)
{
    bool done = dl_iterate_phdr(protect_relocated, NULL) >= 0;
    // None of our descriptors may become 0, 1 or 2, and be taken for a standard stream. A stream that was closed fails
    // at every write: a result that should go there must not seem to have arrived.
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            done = succeeds(open("/dev/null", O_RDONLY), "opening /dev/null") && done;
    close_others_on_exec();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // past RLIMIT_FSIZE the write fails instead
    return done && succeeds(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), NOT_DUMPABLE) &&
           succeeds(prctl(PR_SET_NAME, "sba"), "naming the process") && // `pkill node` must not mean cynode-sba
           succeeds(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "giving up new privileges (PR_SET_NO_NEW_PRIVS)") &&
           (getpid() == 1 || // PID 1 adopts them anyway
            succeeds(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "adopting orphans (PR_SET_CHILD_SUBREAPER)"));
}

// A whole decimal number below 2^32 - 1 (which means "no id").
static bool parse_id(const char *text, unsigned *id)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || value >= 0xffffffffu)
        return false;
    *id = (unsigned)value;
    return true;
}

static int find_user(const char *text, uid_t *uid, gid_t *gid, struct error *error)
{
    bool numeric = parse_id(text, uid);
    const struct passwd *entry = numeric ? getpwuid(*uid) : getpwnam(text);
    if (!entry && !numeric)
        return error_set(error, "unknown_user", 0, "the user %s is not in /etc/passwd; name a UID", text);
    *uid = entry ? entry->pw_uid : *uid;
    *gid = entry ? entry->pw_gid : *uid;
    return 0;
}

int identity_become(const char *user, struct error *error)
{
    uid_t uid;
    gid_t gid;
    const char *colon = strchr(user, ':');
    cleanup_free char *name = colon ? strndup(user, (size_t)(colon - user)) : strdup(user);

    if (!name || !*name)
        return error_set(error, "invalid", 0, "\"%s\" is no user; write UID, UID:GID or a name", user);
    if (find_user(name, &uid, &gid, error) < 0)
        return -1;
    if (colon && !parse_id(colon + 1, &gid))
        return error_set(error, "invalid", 0, "the group of \"%s\" is not a number; write UID:GID", user);
    if (uid == 0)
        return error_set(error, "invalid", 0, "%s is root; name an ordinary user", user);
    if (uid == geteuid() && uid == getuid() && gid == getegid())
        return 0;
    if (setgroups(1, &gid) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return error_system(error, errno, "cannot become user %s", user);
    if (setresuid(0, 0, 0) == 0)
        return error_set(error, "permission_denied", 0, "the change to user %s could be undone", user);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return error_system(error, errno, NOT_DUMPABLE);
    return 0;
}

void identity_forget_variable(const char *name)
{
    extern char **environ;
    size_t size = strlen(name);
    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, name, size) == 0 && (*entry)[size] == '=')
            explicit_bzero(*entry + size + 1, strlen(*entry + size + 1));
    unsetenv(name);
}
