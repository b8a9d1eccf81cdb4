// SPDX-License-Identifier: Apache-2.0
// core/identity: what leaves the environment.
#include "core/base/identity.h"

#include "check.h"

#include <fcntl.h>
#include <sys/wait.h>

// Starts itself again with a secret in its environment, for /proc/self/environ shows what a process was started with.
static int forget_and_look(void)
{
    char bytes[4096];
    identity_forget_variable("SECRET");
    int fd = open("/proc/self/environ", O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof bytes);
    if (getenv("SECRET") || !getenv("SECRETARY") || size <= 0)
        return 2;
    return memmem(bytes, (size_t)size, "hidden", 6) ? 3 : 0;
}

static void forgets_a_variable_for_good(void **state)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char *argv[] = {"test_identity", "forget", NULL};
        char *env[] = {"SECRETARY=kept", "SECRET=hidden", "ASAN_OPTIONS=detect_leaks=0", NULL};
        execve("/proc/self/exe", argv, env);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "forget") == 0)
        return forget_and_look();
    const struct CMUnitTest tests[] = {cmocka_unit_test(forgets_a_variable_for_good)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
