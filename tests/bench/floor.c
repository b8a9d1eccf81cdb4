// SPDX-License-Identifier: Apache-2.0
// floor MODE COUNT DIRECTORY: what a careful program without Lua needs to keep the runner's promises: each step a line
// of the journal before and after it, both in the log; commands in sessions of their own, their output through pipes;
// files resolved below the workspace and replaced atomically; digests; a first result and a last one that is synced. It
// checks no job, looks for no secrets and confines nothing. DIRECTORY holds job/job.json and workspace/. Modes: empty;
// commands (/bin/true); steps (files of 4 KB, written, then read); read (big); write (the job's content).
#define _GNU_SOURCE
#define OPENSSL_API_COMPAT 0x10100000L // SHA256 is deprecated since
#include <fcntl.h>
#include <linux/openat2.h>
#include <openssl/sha.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct text {
    char *bytes;
    size_t size;
};

static const char FINISHED[] = "{\"event\":\"step.finished\",\"entry\":";
static int journal, job_directory, workspace, null;
static char *entry, *at;    // the line of the journal that is being made, and its end
static struct text entries; // of the result

static long must(long outcome, const char *what)
{
    if (outcome < 0) {
        perror(what);
        exit(1);
    }
    return outcome;
}

static void *resize(void *block, size_t size)
{
    block = realloc(block, size);
    must(block ? 0 : -1, "memory");
    return block;
}

static void put(int fd, const char *bytes, size_t size)
{
    for (long done; size; bytes += done, size -= (size_t)done)
        done = must(write(fd, bytes, size), "write");
}

static const char *now(void)
{
    static char text[64];
    struct timespec time;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &time);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&time.tv_sec, &parts));
    sprintf(text + 19, ".%03ldZ", time.tv_nsec / 1000000);
    return text;
}

static const char *digest(const char *bytes, size_t size)
{
    static char hex[65];
    unsigned char raw[32];
    SHA256((const unsigned char *)bytes, size, raw);
    for (int i = 0; i < 32; i++)
        sprintf(hex + 2 * i, "%02x", raw[i]);
    return hex;
}

static void tell(const char *event, int index, const char *type, const char *more)
{
    char line[512];
    int size = snprintf(line, sizeof line,
                        "{\"ts\":\"%s\",\"level\":\"info\",\"event\":\"%s\",\"job_id\":\"bench\",\"task_id\":\"bench\","
                        "\"step\":%d,\"id\":\"step-%d\",\"type\":\"%s\"%s}\n",
                        now(), event, index + 1, index + 1, type, more);
    put(STDERR_FILENO, line, (size_t)size);
}

static void begin(int index, const char *type, size_t room)
{
    entry = resize(entry, room + 2048);
    at = entry + sprintf(entry, "{\"event\":\"step.started\",\"at\":\"%s\",\"index\":%d,\"type\":\"%s\"}\n", now(),
                         index, type);
    put(journal, entry, (size_t)(at - entry));
    tell("step.started", index, type, "");
    at = entry + sprintf(entry, "%s{\"index\":%d,\"id\":\"step-%d\",\"type\":\"%s\",\"started_at\":\"%s\",", FINISHED,
                         index, index + 1, type, now());
}

static void finish(int index, const char *type)
{
    const size_t head = strlen(FINISHED), size = (size_t)(at - entry) - head;
    at = stpcpy(at, "}\n");
    put(journal, entry, (size_t)(at - entry));
    entries.bytes = resize(entries.bytes, entries.size + size + 1);
    if (entries.size)
        entries.bytes[entries.size++] = ',';
    memcpy(entries.bytes + entries.size, entry + head, size);
    entries.size += size;
    tell("step.finished", index, type, ",\"status\":\"success\",\"duration_ms\":0");
}

static void escape(const char *bytes, size_t size)
{
    for (const char *end = bytes + size, *run = bytes;; run = ++bytes) {
        while (bytes < end && (unsigned char)*bytes >= 0x20 && *bytes != '"' && *bytes != '\\')
            bytes++;
        at = mempcpy(at, run, (size_t)(bytes - run));
        if (bytes == end)
            break;
        *at++ = '\\';
        *at++ = *bytes == '\n' ? 'n' : *bytes == '\t' ? 't' : *bytes;
    }
}

static int open_below(const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    return (int)must(syscall(SYS_openat2, workspace, path, &how, sizeof how), path);
}

static void replace(int directory, const char *name, struct text content, bool is_result, bool durable)
{
    char temporary[64];
    snprintf(temporary, sizeof temporary, ".%s.tmp", name);
    int fd = (int)must(openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), temporary);
    if (is_result)
        put(fd, "{\"steps\":[", 10);
    put(fd, content.bytes, content.size);
    if (is_result)
        put(fd, "],\"failure_code\":null}\n", 23);
    if (durable)
        must(fsync(fd), "fsync");
    must(renameat(directory, temporary, directory, name), "rename");
    if (durable)
        must(fsync(directory), "fsync");
    close(fd);
}

static struct text read_whole(int fd)
{
    struct stat status;
    must(fstat(fd, &status), "fstat");
    struct text text = {.bytes = resize(NULL, (size_t)status.st_size + 1)};
    for (long got = 1; got > 0; text.size += (size_t)got)
        got = must(read(fd, text.bytes + text.size, (size_t)status.st_size + 1 - text.size), "read");
    close(fd);
    return text;
}

static void write_file(int index, const char *name, struct text content)
{
    struct stat status;
    begin(index, "write_file", 0);
    int directory = open_below(".", O_PATH | O_DIRECTORY);
    bool created = fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0;
    replace(directory, name, content, false, false);
    close(directory);
    at += sprintf(at, "\"result\":{\"path\":\"%s\",\"size_bytes\":%zu,\"sha256\":\"%s\",\"created\":%d}}", name,
                  content.size, digest(content.bytes, content.size), created);
    finish(index, "write_file");
}

static void read_file(int index, const char *name)
{
    struct text content = read_whole(open_below(name, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    begin(index, "read_file", 4 * content.size);
    at = stpcpy(at, "\"output\":\"");
    escape(content.bytes, content.size < 1 << 20 ? content.size : 1 << 20);
    at += sprintf(at, "\",\"result\":{\"path\":\"%s\",\"content\":\"", name);
    escape(content.bytes, content.size);
    at += sprintf(at, "\",\"size_bytes\":%zu,\"sha256\":\"%s\"}}", content.size, digest(content.bytes, content.size));
    free(content.bytes);
    finish(index, "read_file");
}

static int command(void *pipes)
{
    const int *ends = pipes;
    setsid();
    if (fchdir(workspace) == 0 && dup2(null, 0) == 0 && dup2(ends[1], 1) == 1 && dup2(ends[3], 2) == 2)
        execl("/bin/true", "true", (char *)NULL);
    _exit(127);
}

static void run_command(int index)
{
    static char stack[64 << 10], output[4096];
    int pipes[4], process, status = 0;
    struct rusage usage;
    begin(index, "run_command", 0);
    must(pipe2(pipes, O_CLOEXEC), "pipe");
    must(pipe2(pipes + 2, O_CLOEXEC), "pipe");
    int how = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
    pid_t pid = (pid_t)must(clone(command, stack + sizeof stack, how, pipes, &process), "clone");
    close(pipes[1]);
    close(pipes[3]);
    struct pollfd events[] = {{pipes[0], POLLIN, 0}, {pipes[2], POLLIN, 0}, {process, POLLIN, 0}};
    for (int open = 3; open > 0;) {
        poll(events, 3, -1);
        for (int i = 0; i < 3; i++) {
            if (!events[i].revents || (i < 2 && read(events[i].fd, output, sizeof output) > 0))
                continue;
            close(events[i].fd);
            events[i] = (struct pollfd){.fd = -1};
            open--;
        }
    }
    wait4(pid, &status, 0, &usage);
    at += sprintf(at, "\"result\":{\"exit_code\":%d,\"stdout\":\"\",\"stderr\":\"\",\"max_rss_bytes\":%ld}}",
                  WEXITSTATUS(status), usage.ru_maxrss * 1024);
    finish(index, "run_command");
}

// The content of the job's one step, which has no escapes.
static struct text content_of(struct text job)
{
    static const char key[] = "\"content\": \"";
    char *begins = memmem(job.bytes, job.size, key, strlen(key));
    must(begins ? 0 : -1, "content");
    begins += strlen(key);
    return (struct text){begins,
                         (size_t)((char *)memchr(begins, '"', job.size - (size_t)(begins - job.bytes)) - begins)};
}

int main(int argc, char **argv)
{
    static char small[4096], name[32];
    if (argc != 4)
        return 2;
    const char *mode = argv[1];
    int count = atoi(argv[2]);
    must(chdir(argv[3]), argv[3]);
    job_directory = (int)must(open("job", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "job");
    workspace = (int)must(open("workspace", O_PATH | O_DIRECTORY | O_CLOEXEC), "workspace");
    null = (int)must(open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null");
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    struct text job = read_whole(openat(job_directory, "job.json", O_RDONLY | O_CLOEXEC));
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
    journal = (int)must(openat(job_directory, "journal.jsonl", flags, 0644), "journal");
    dprintf(journal, "{\"event\":\"job\",\"job_sha256\":\"%s\"}\n", digest(job.bytes, job.size));
    replace(job_directory, "result.json", entries, true, false);
    memset(small, 'x', sizeof small);
    for (int i = 0; i < count && strcmp(mode, "commands") == 0; i++)
        run_command(i);
    for (int i = 0; i < 2 * count && strcmp(mode, "steps") == 0; i++) {
        snprintf(name, sizeof name, "file%d", i % count);
        if (i < count)
            write_file(i, name, (struct text){small, sizeof small});
        else
            read_file(i, name);
    }
    if (strcmp(mode, "read") == 0)
        read_file(0, "big");
    if (strcmp(mode, "write") == 0)
        write_file(0, "written", content_of(job));
    replace(job_directory, "result.json", entries, true, true);
    return 0;
}
