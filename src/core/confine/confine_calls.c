// SPDX-License-Identifier: Apache-2.0
// The seccomp filter of commands, see confine_calls.h.
#include "core/confine/confine_calls.h"

#include "core/base/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h> // FIOSETOWN of glibc
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define CALL(name, i386, arm)                                                                                          \
    {                                                                                                                  \
        SYS_##name, i386                                                                                               \
    }
static const uint32_t native = AUDIT_ARCH_X86_64, compatible = AUDIT_ARCH_I386;
static const uint32_t foreign = 0x40000000; // from here on numbers are of the x32 ABI
#elif defined __aarch64__
#define CALL(name, i386, arm)                                                                                          \
    {                                                                                                                  \
        SYS_##name, arm                                                                                                \
    }
static const uint32_t native = AUDIT_ARCH_AARCH64, compatible = AUDIT_ARCH_ARM;
static const uint32_t foreign = UINT32_MAX;
#else
#error "the numbers of 32-bit programs on this architecture are missing"
#endif

enum { ANY = -1, MOST = 1024, IOPRIO_WHO_USER = 3 };

// A call that is refused if `argument` names us (ANY: always). With a selector that holds only where that argument has
// the value.
static const struct rule {
    uint32_t number[2]; // native, of 32-bit programs
    int argument;
    int selector;
    uint32_t value;
} rules[] = {
    {CALL(kill, 37, 37), 0, ANY, 0},
    {CALL(tkill, 238, 238), 0, ANY, 0},
    {CALL(tgkill, 270, 268), 0, ANY, 0},
    {CALL(rt_sigqueueinfo, 178, 178), 0, ANY, 0},
    {CALL(rt_tgsigqueueinfo, 335, 363), 0, ANY, 0},
    {CALL(pidfd_send_signal, 424, 424), ANY, ANY, 0},
    {CALL(fcntl, 221, 221), 2, 1, F_SETOWN},
    {CALL(fcntl, 221, 221), ANY, 1, F_SETOWN_EX},
    {CALL(fcntl, 55, 55), 2, 1, F_SETOWN},
    {CALL(fcntl, 55, 55), ANY, 1, F_SETOWN_EX},
    {CALL(ioctl, 54, 54), ANY, 1, FIOSETOWN},
    {CALL(ioctl, 54, 54), ANY, 1, SIOCSPGRP},
    {CALL(sched_setparam, 154, 154), 0, ANY, 0},
    {CALL(sched_setscheduler, 156, 156), 0, ANY, 0},
    {CALL(sched_setaffinity, 241, 241), 0, ANY, 0},
    {CALL(sched_setattr, 351, 380), 0, ANY, 0},
    {CALL(setpriority, 97, 97), ANY, 0, PRIO_USER},
    {CALL(setpriority, 97, 97), 1, ANY, 0},
    {CALL(ioprio_set, 289, 314), ANY, 0, IOPRIO_WHO_USER},
    {CALL(ioprio_set, 289, 314), 1, ANY, 0},
};
static const uint32_t set_limits[] = CALL(prlimit64, 340, 369);

static struct sock_filter code[MOST];
static unsigned short size;

static void emit(uint16_t operation, uint32_t value, size_t if_true, size_t if_false)
{
    code[size++] = (struct sock_filter){operation, (uint8_t)if_true, (uint8_t)if_false, value};
}

static void load(size_t offset)
{
    emit(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

// The kernel reads no more of these arguments than their low half.
static void load_argument(int argument)
{
    load(offsetof(struct seccomp_data, args) + (size_t)argument * sizeof(uint64_t));
}

// Goes on if the loaded value is this one, else skips so many instructions.
static void only_if(uint32_t value, size_t skipped)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped);
}

static void answer(uint32_t action)
{
    emit(BPF_RET | BPF_K, action, 0, 0);
}

static void refuse(void)
{
    answer(SECCOMP_RET_ERRNO | EPERM);
}

// Refuses if the loaded value is one of these.
static void refuse_targets(const uint32_t *targets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        emit(BPF_JMP | BPF_JEQ | BPF_K, targets[i], count - i, 0);
    emit(BPF_JMP | BPF_JA, 1, 0, 0);
    refuse();
}

// Each rule leaves the number of the call loaded for the next one.
static void add_rule(const struct rule *rule, int abi, const uint32_t *targets, size_t count)
{
    enum { RELOAD = 1, CHOICE = 2, TARGETS = 3 }; // instructions; of the targets besides one for each
    size_t action = rule->argument == ANY ? 1 : count + TARGETS;
    size_t choice = rule->selector == ANY ? 0 : CHOICE;
    only_if(rule->number[abi], choice + action + RELOAD);
    if (rule->selector != ANY) {
        load_argument(rule->selector);
        only_if(rule->value, action);
    }
    if (rule->argument == ANY) {
        refuse();
    } else {
        load_argument(rule->argument);
        refuse_targets(targets, count);
    }
    load(offsetof(struct seccomp_data, nr));
}

// Limits may be read of every process, and set for the caller: the call is refused if PID is not 0 and neither half of
// the pointer to the new limits is.
static void add_prlimit(int abi)
{
    enum { PID, RESOURCE, NEW_LIMITS };
    enum { LOAD = 1, TEST = 1, REFUSE = 1 }; // instructions
    const size_t low = offsetof(struct seccomp_data, args[NEW_LIMITS]), high = low + sizeof(uint32_t);
    const size_t after_high = REFUSE, after_low = LOAD + TEST, after_pid = LOAD + TEST + after_low + REFUSE;
    only_if(set_limits[abi], LOAD + TEST + after_pid);
    load_argument(PID);
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, after_pid, 0);
    load(low);
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, after_low);
    load(high);
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, after_high, 0);
    refuse();
}

static void add_abi(int abi, const uint32_t *targets, size_t count)
{
    load(offsetof(struct seccomp_data, nr));
    emit(BPF_JMP | BPF_JGE | BPF_K, foreign, 0, 1);
    refuse();
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        add_rule(&rules[i], abi, targets, count);
    add_prlimit(abi);
    answer(SECCOMP_RET_ALLOW);
}

static size_t fill_targets(uint32_t *targets)
{
    pid_t threads[THREADS_MOST], group = getpgrp();
    size_t count = threads_all(threads);
    for (size_t i = 0; i < count; i++)
        targets[i] = (uint32_t)threads[i];
    targets[count++] = (uint32_t)-1;
    if (group > 0) { // else it is of another PID namespace, and out of reach
        targets[count++] = (uint32_t)group;
        targets[count++] = (uint32_t)-group;
    }
    return count;
}

void confine_calls_prepare(void)
{
    uint32_t targets[THREADS_MOST + 3];
    size_t count = fill_targets(targets);
    size = 0;
    load(offsetof(struct seccomp_data, arch));
    only_if(native, 1);
    emit(BPF_JMP | BPF_JA, 0, 0, 0);
    struct sock_filter *over = &code[size - 1];
    emit(BPF_JMP | BPF_JEQ | BPF_K, compatible, 1, 0);
    answer(SECCOMP_RET_ALLOW);
    add_abi(1, targets, count);
    over->k = (uint32_t)(&code[size] - over - 1);
    add_abi(0, targets, count);
}

bool confine_calls_known(void)
{
    uint32_t action = SECCOMP_RET_ERRNO;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

// SPEC_ALLOW: before Linux 5.16 a filter else slows what it covers by the defences against speculation.
__attribute__((no_sanitize("address", "undefined"))) int confine_calls_enter(void)
{
    const struct sock_fprog program = {size, code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0)
        return 0;
    if (errno != EINVAL) // Linux before 4.17 has no such flag
        return errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? errno : 0;
}
