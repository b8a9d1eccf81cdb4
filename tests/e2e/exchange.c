// SPDX-License-Identifier: Apache-2.0
// exchange A B: exchanges two names, over and over, until its parent ends or it is killed.
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (argc == 3 && syscall(SYS_renameat2, AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) == 0)
        continue;
    perror("exchange");
    return 1;
}
