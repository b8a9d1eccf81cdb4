// SPDX-License-Identifier: Apache-2.0
// Our threads, see threads.h.
#include "core/base/threads.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK = 64 << 10 };

struct thread {
    void *(*run)(void *);
    void *data;
    pid_t *id;
    sem_t has_id;
    pid_t own_id;
};

static struct thread started[THREADS_MOST - 1];
static size_t count;

void threads_crashes(sigset_t *signals)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    sigemptyset(signals);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        sigaddset(signals, crashes[i]);
}

// A blocked signal of a crash would end the program at once.
static void *begin(void *data)
{
    struct thread *thread = data;
    sigset_t crashes;
    thread->own_id = (pid_t)syscall(SYS_gettid);
    if (thread->id)
        *thread->id = thread->own_id;
    threads_crashes(&crashes);
    pthread_sigmask(SIG_UNBLOCK, &crashes, NULL);
    sem_post(&thread->has_id);
    return thread->run(thread->data);
}

int threads_start(void *(*run)(void *), void *data, pid_t *id)
{
    pthread_t unused;
    pthread_attr_t attributes;
    sigset_t all, before;
    struct thread *thread = &started[count];
    *thread = (struct thread){.run = run, .data = data, .id = id};
    sem_init(&thread->has_id, 0, 0);
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errno = 0;
    int error = pthread_create(&unused, &attributes, begin, thread);
    if (error == EAGAIN && errno == ENOMEM) // for want of a stack, which only errno tells
        error = ENOMEM;
    if (error == 0)
        count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

size_t threads_all(pid_t ids[THREADS_MOST])
{
    ids[0] = getpid();
    for (size_t i = 0; i < count; i++) {
        while (sem_wait(&started[i].has_id) < 0) // for a thread that has not run yet
            continue;
        sem_post(&started[i].has_id);
        ids[i + 1] = started[i].own_id;
    }
    return count + 1;
}
