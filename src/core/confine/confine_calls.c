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

enum { ANY = -1, MOST = 1024, MOST_TARGETS = THREADS_MOST + 3, IOPRIO_WHO_USER = 3 };

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

// Jumps from here to land() if the loaded value is this one, or unless it is.
static uint8_t *jump_if(uint32_t value)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0);
    return &code[size - 1].jt;
}

static uint8_t *jump_unless(uint32_t value)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0);
    return &code[size - 1].jf;
}

static void land(uint8_t *jump)
{
    size_t from = (size_t)((char *)jump - (char *)code) / sizeof *code;
    *jump = (uint8_t)(size - from - 1);
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
    uint8_t *found[MOST_TARGETS];
    for (size_t i = 0; i < count; i++)
        found[i] = jump_if(targets[i]);
    emit(BPF_JMP | BPF_JA, 1, 0, 0); // over the refusal
    for (size_t i = 0; i < count; i++)
        land(found[i]);
    refuse();
}

// Each rule leaves the number of the call loaded for the next one.
static void add_rule(const struct rule *rule, int abi, const uint32_t *targets, size_t count)
{
    uint8_t *other_call = jump_unless(rule->number[abi]), *other_choice = NULL;
    if (rule->selector != ANY) {
        load_argument(rule->selector);
        other_choice = jump_unless(rule->value);
    }
    if (rule->argument == ANY) {
        refuse();
    } else {
        load_argument(rule->argument);
        refuse_targets(targets, count);
    }
    if (other_choice)
        land(other_choice);
    load(offsetof(struct seccomp_data, nr));
    land(other_call);
}

// Limits may be read of every process, and set for the caller: the call is refused unless PID is 0, or both halves of
// the pointer to the new limits are.
static void add_prlimit(int abi)
{
    enum { PID, RESOURCE, NEW_LIMITS };
    uint8_t *other_call = jump_unless(set_limits[abi]);
    load_argument(PID);
    uint8_t *own = jump_if(0);
    load_argument(NEW_LIMITS);
    uint8_t *sets = jump_unless(0);
    load(offsetof(struct seccomp_data, args[NEW_LIMITS]) + sizeof(uint32_t));
    uint8_t *reads = jump_if(0);
    land(sets);
    refuse();
    land(other_call);
    land(own);
    land(reads);
}

static void add_abi(int abi, const uint32_t *targets, size_t count)
{
    load(offsetof(struct seccomp_data, nr));
    emit(BPF_JMP | BPF_JGE | BPF_K, foreign, 0, 1); // else over the refusal
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
    uint32_t targets[MOST_TARGETS];
    size_t count = fill_targets(targets);
    size = 0;
    load(offsetof(struct seccomp_data, arch));
    uint8_t *not_native = jump_unless(native);
    emit(BPF_JMP | BPF_JA, 0, 0, 0);
    land(not_native);
    struct sock_filter *over = &code[size - 1];
    emit(BPF_JMP | BPF_JEQ | BPF_K, compatible, 1, 0); // over the answer to programs of a third architecture
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
