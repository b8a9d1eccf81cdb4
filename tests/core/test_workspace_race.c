// SPDX-License-Identifier: Apache-2.0
// A directory moved out of the workspace while a path through it is resolved; links that lead out: test_escapes.py,
// Races. A naive resolver runs through the same test first: it must leak, or the test could not tell.
#include "core/base/cleanup.h"

#include "check.h"
#include "core/workspace/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { ROUNDS = 40000, NAIVE_ROUNDS_MAX = 4000000, LEAKED = 1, NO_LEAK = 0, BROKEN = 2 };

typedef int resolver(const struct workspace *workspace, const char *path);

// No link is followed, but ".." is asked of the kernel.
static int parent_opened(const struct workspace *workspace, const char *path)
{
    cleanup_free char *copy = strdup(path);
    cleanup_fd int at = openat(workspace->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *name = copy;
    for (char *slash; (slash = strchr(name, '/')); name = slash + 1) {
        *slash = '\0';
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return -1;
        close(at);
        at = next;
    }
    return openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

static int ours(const struct workspace *workspace, const char *path)
{
    return workspace_resolve(workspace, path, O_RDONLY | O_NONBLOCK);
}

static void forbid_openat2(int number)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)number),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(BROKEN);
}

// A directory of the workspace is exchanged with one outside, so that its parent is outside now and then.
static const char first[] = "work/a/b", second[] = "outside/b", resolved[] = "a/b/../file";

static int make_scene(void **state)
{
    static const char *const directories[] = {"work", "work/a", "work/a/b", "outside", "outside/b"};
    if (make_directory(state) < 0 || chdir(directory) < 0)
        return -1;
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        assert_int_equal(mkdir(directories[i], 0755), 0);
    put("work/a/file", "inside");
    put("outside/file", "SECRET");
    return 0;
}

// Resolves until it leaks or the rounds are over. At least one must succeed, or nothing was tried.
static int resolve_often(resolver *resolve, int rounds)
{
    struct error error = {0};
    struct workspace workspace;
    int inside = 0;
    if (workspace_open(&workspace, "work", &error) < 0)
        return BROKEN;
    for (int i = 0; i < rounds || (inside == 0 && i < 10 * rounds); i++) {
        char content[8] = "";
        cleanup_fd int fd = resolve(&workspace, resolved);
        if (fd >= 0 && read(fd, content, sizeof content - 1) < 0)
            return BROKEN;
        if (strcmp(content, "SECRET") == 0)
            return LEAKED;
        inside += strcmp(content, "inside") == 0;
    }
    workspace_close(&workspace);
    return inside ? NO_LEAK : BROKEN;
}

static void exchange_forever(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        if (syscall(SYS_renameat2, AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE) < 0)
            _exit(BROKEN);
}

// In processes of their own, because what openat2 does is found out once per process.
static int outcome_of(resolver *resolve, int rounds, int forbidden)
{
    int status;
    pid_t attacker = fork();
    if (attacker == 0)
        exchange_forever();
    pid_t victim = fork();
    if (victim == 0) {
        if (forbidden)
            forbid_openat2(forbidden);
        _exit(resolve_often(resolve, rounds));
    }
    waitpid(victim, &status, 0);
    assert_int_equal(waitpid(attacker, NULL, WNOHANG), 0);
    kill(attacker, SIGKILL);
    waitpid(attacker, NULL, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : BROKEN;
}

static void naive_resolver_leaks(void **state)
{
    assert_int_equal(outcome_of(parent_opened, NAIVE_ROUNDS_MAX, 0), LEAKED);
}

// With openat2, and with the walk that stands for it where the kernel refuses it in one of two ways.
static void ours_does_not_leak(void **state)
{
    static const int forbidden[] = {0, ENOSYS, EPERM};
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        assert_int_equal(outcome_of(ours, ROUNDS, forbidden[i]), NO_LEAK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(naive_resolver_leaks),
        cmocka_unit_test(ours_does_not_leak),
    };
    return cmocka_run_group_tests(tests, make_scene, remove_directory);
}
