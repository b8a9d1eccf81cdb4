// SPDX-License-Identifier: Apache-2.0
// Directories renamed while paths are resolved. Naive resolvers run through the same tests first: they must leak, or
// the tests could not tell.
#include "core/base/cleanup.h"

#include "check.h"
#include "core/files/workspace.h"

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

static int checked_then_opened(const struct workspace *workspace, const char *path)
{
    cleanup_free char *copy = strdup(path);
    struct stat status;
    for (char *slash = copy; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (fstatat(workspace->fd, copy, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(status.st_mode))
            return -1;
    }
    return openat(workspace->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

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

// The last name is looked at, and then followed.
static int looked_then_followed(const struct workspace *workspace, const char *path)
{
    struct stat status;
    if (fstatat(workspace->fd, path, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(status.st_mode))
        return -1;
    return openat(workspace->fd, path, O_RDONLY | O_CLOEXEC);
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

struct scene {
    const char *first, *second; // exchanged all the time
    const char *path;           // resolved all the time
};

// The directory is exchanged with a link that leads out.
static const struct scene link_scene = {"work/dir", "work/link", "dir/sub/file"};
// A directory of the workspace is exchanged with one outside, so that its parent is outside now and then.
static const struct scene move_scene = {"work/a/b", "outside/b", "a/b/../file"};
// A file is exchanged with a link to one outside.
static const struct scene file_scene = {"work/one", "work/other", "one"};

static int make_scenes(void **state)
{
    static const char *const directories[] = {"work",     "work/dir", "work/dir/sub", "work/a",
                                              "work/a/b", "outside",  "outside/b",    "outside/sub"};
    if (make_directory(state) < 0 || chdir(directory) < 0)
        return -1;
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        assert_int_equal(mkdir(directories[i], 0755), 0);
    put("work/dir/sub/file", "inside");
    put("work/a/file", "inside");
    put("outside/sub/file", "SECRET");
    put("outside/file", "SECRET");
    put("work/one", "inside");
    assert_int_equal(symlink("../outside/file", "work/other"), 0);
    return symlink("../outside", "work/link");
}

// Resolves until it leaks or the rounds are over. At least one must succeed, or nothing was tried.
static int resolve_often(resolver *resolve, const struct scene *scene, int rounds)
{
    struct error error = {0};
    struct workspace workspace;
    int inside = 0;
    if (workspace_open(&workspace, "work", &error) < 0)
        return BROKEN;
    for (int i = 0; i < rounds || (inside == 0 && i < 10 * rounds); i++) {
        char content[8] = "";
        cleanup_fd int fd = resolve(&workspace, scene->path);
        if (fd >= 0 && read(fd, content, sizeof content - 1) < 0)
            return BROKEN;
        if (strcmp(content, "SECRET") == 0)
            return LEAKED;
        inside += strcmp(content, "inside") == 0;
    }
    workspace_close(&workspace);
    return inside ? NO_LEAK : BROKEN;
}

static void exchange_forever(const struct scene *scene)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        if (syscall(SYS_renameat2, AT_FDCWD, scene->first, AT_FDCWD, scene->second, RENAME_EXCHANGE) < 0)
            _exit(BROKEN);
}

// In processes of their own, because what openat2 does is found out once per process.
static int outcome_of(resolver *resolve, const struct scene *scene, int rounds, int forbidden)
{
    int status;
    pid_t attacker = fork();
    if (attacker == 0)
        exchange_forever(scene);
    pid_t victim = fork();
    if (victim == 0) {
        if (forbidden)
            forbid_openat2(forbidden);
        _exit(resolve_often(resolve, scene, rounds));
    }
    waitpid(victim, &status, 0);
    assert_int_equal(waitpid(attacker, NULL, WNOHANG), 0);
    kill(attacker, SIGKILL);
    waitpid(attacker, NULL, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : BROKEN;
}

static void naive_resolvers_leak(void **state)
{
    assert_int_equal(outcome_of(checked_then_opened, &link_scene, NAIVE_ROUNDS_MAX, 0), LEAKED);
    assert_int_equal(outcome_of(parent_opened, &move_scene, NAIVE_ROUNDS_MAX, 0), LEAKED);
    assert_int_equal(outcome_of(looked_then_followed, &file_scene, NAIVE_ROUNDS_MAX, 0), LEAKED);
}

// With openat2, and with the walk that stands for it where the kernel refuses it in one of two ways.
static void ours_does_not_leak(void **state)
{
    static const int forbidden[] = {0, ENOSYS, EPERM};
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        assert_int_equal(outcome_of(ours, &link_scene, ROUNDS, forbidden[i]), NO_LEAK);
        assert_int_equal(outcome_of(ours, &move_scene, ROUNDS, forbidden[i]), NO_LEAK);
        assert_int_equal(outcome_of(ours, &file_scene, ROUNDS, forbidden[i]), NO_LEAK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(naive_resolvers_leak),
        cmocka_unit_test(ours_does_not_leak),
    };
    return cmocka_run_group_tests(tests, make_scenes, remove_directory);
}
