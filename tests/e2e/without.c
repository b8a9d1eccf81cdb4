// SPDX-License-Identifier: Apache-2.0
// without openat2|landlock|seccomp ENOSYS|EPERM COMMAND...: runs a command for which the system call fails so, as on an
// old kernel or under an old container sandbox. Of Landlock it is the call that creates rules, and asks for the
// version.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif

int main(int argc, char **argv)
{
    if (argc < 4)
        return 125;
    unsigned short number = strcmp(argv[2], "EPERM") == 0 ? EPERM : ENOSYS;
    unsigned call = strcmp(argv[1], "landlock") == 0  ? SYS_landlock_create_ruleset
                    : strcmp(argv[1], "seccomp") == 0 ? SYS_seccomp
                                                      : SYS_openat2;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | number),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
        perror("without");
        return 125;
    }
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return 127;
}
