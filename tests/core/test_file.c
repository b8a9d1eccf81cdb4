// SPDX-License-Identifier: Apache-2.0
// core/file and core/stream: bounded reads, the append log, and writes to slow readers.
#include "core/files/file.h"

#include "check.h"
#include "core/base/interrupt.h"
#include "core/files/file_log.h"
#include "core/files/stream.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void check_read(const char *path, size_t limit, const char *content)
{
    struct buffer out = {0};
    struct error error = {0};
    assert_true(file_read(path, limit, false, &out, &error) > 0);
    check_bytes(&out, content, strlen(content));
    buffer_free(&out);
}

static void check_unread(const char *path, size_t limit, const char *code)
{
    struct buffer out = {0};
    struct error error = {0};
    assert_int_equal(file_read(path, limit, false, &out, &error), -1);
    assert_string_equal(error.code, code);
    error_clear(&error);
    buffer_free(&out);
}

static void reads_up_to_its_limit(void **state)
{
    put(in_directory("ten"), "0123456789");
    check_read(in_directory("ten"), 10, "0123456789");
    check_unread(in_directory("ten"), 9, "too_large");
    put(in_directory("empty"), "");
    check_read(in_directory("empty"), 0, "");
    check_unread("/dev/zero", 100000, "too_large");
    check_unread(in_directory("missing"), 10, "not_found");
    check_unread(directory, 10, "is_a_directory");
}

static void reads_a_pipe_that_is_written_slowly(void **state)
{
    assert_int_equal(mkfifo(in_directory("fifo"), 0600), 0);
    pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0) {
        int fd = open(in_directory("fifo"), O_WRONLY);
        for (int i = 0; i < 5; i++) {
            poll(NULL, 0, 10);
            if (write(fd, "ab", 2) != 2)
                _exit(1);
        }
        _exit(0);
    }
    check_read(in_directory("fifo"), 100, "ababababab");
    assert_int_equal(waitpid(writer, NULL, 0), writer);
}

static void is_locked_by_one(void **state)
{
    struct error error = {0};
    struct file_log log, other;
    put(in_directory("log"), "torn");
    assert_int_equal(file_log_open(&log, in_directory("log"), false, &error), 0);
    assert_int_equal(file_log_open(&other, in_directory("log"), false, &error), 0);
    assert_int_equal(file_log_lock(&log, &error), 0);
    assert_int_equal(file_log_lock(&other, &error), -1);
    assert_string_equal(error.code, "locked");
    error_clear(&error);
    assert_true(file_log_is_locked(in_directory("log")));
    check_read(in_directory("log"), 100, "torn");
    close(log.fd);
    assert_false(file_log_is_locked(in_directory("log")));
    assert_int_equal(file_log_lock(&other, &error), 0);
    close(other.fd);
    assert_int_equal(file_log_open(&log, in_directory("none"), false, &error), -1);
    assert_string_equal(error.code, "not_found");
    error_clear(&error);
}

static void check_no_log(const char *path)
{
    struct error error = {0};
    struct file_log log;
    assert_int_equal(file_log_open(&log, path, true, &error), -1);
    assert_string_equal(error.code, "not_a_file");
    error_clear(&error);
}

static void appends_to_regular_files_only(void **state)
{
    put(in_directory("target"), "untouched");
    assert_int_equal(symlink("target", in_directory("link")), 0);
    check_no_log(in_directory("link"));
    check_no_log(in_directory("fifo"));
    check_no_log(directory);
    check_no_log("/dev/null");
    check_read(in_directory("target"), 100, "untouched");
}

static size_t write_bytes(int fd, const char *bytes, size_t size, int64_t timeout, int64_t whole)
{
    const struct part part = {.bytes = bytes, .size = size};
    return stream_write(fd, &(struct parts){&part, 1, 0}, timeout, whole);
}

static void gives_up_on_a_reader_that_does_not_read(void **state)
{
    static char bytes[1 << 20];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    size_t written = write_bytes(ends[1], bytes, sizeof bytes, 20, INT64_MAX);
    assert_true(written > 0 && written < sizeof bytes);
    assert_int_equal(write_bytes(ends[1], bytes, 1, 0, INT64_MAX), 0);
    close(ends[0]);
    assert_int_equal(write_bytes(ends[1], bytes, 1, 1000, INT64_MAX), 0); // nobody is left: at once
    close(ends[1]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    written = write_bytes(ends[1], bytes, sizeof bytes, 20, INT64_MAX);
    assert_true(written > 0 && written < sizeof bytes);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(write_bytes(-1, bytes, 1, 0, INT64_MAX), 0);
}

// A terminal that has room for a few bytes says that it can be written, and a write of more waits until it is read.
static void does_not_wait_for_a_terminal_that_nobody_reads(void **state)
{
    static char bytes[1 << 20];
    int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(ours >= 0 && grantpt(ours) == 0 && unlockpt(ours) == 0);
    int opened = open(ptsname(ours), O_RDWR | O_NOCTTY | O_CLOEXEC), terminal = STDIN_FILENO;
    assert_int_equal(dup2(opened, terminal), terminal);
    close(opened);
    assert_int_equal(stream_columns(terminal), 80);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = i % 61 ? 'x' : '\n'; // each of which wants room for two bytes
    int64_t begun = clock_now();
    assert_true(write_bytes(terminal, bytes, sizeof bytes, 100, INT64_MAX) < sizeof bytes);
    for (int i = 0; i < 100000; i++)
        write_bytes(terminal, bytes, 100, 0, INT64_MAX);
    assert_true(clock_now() - begun < 60000);
    close(ours);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, terminal);
    close(nothing);
}

// Writes zeros to a process that reads so many bytes at a time, and pauses after each. Returns how many were written.
static size_t write_to_reader(size_t size, size_t read_size, int pause, int64_t longest)
{
    char *bytes = calloc(size, 1);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t reader = fork();
    assert_true(reader >= 0);
    if (reader == 0) {
        close(ends[1]);
        while (read(ends[0], bytes, read_size) > 0)
            poll(NULL, 0, pause);
        _exit(0);
    }
    close(ends[0]);
    size_t written = write_bytes(ends[1], bytes, size, 60000, longest);
    close(ends[1]);
    assert_int_equal(waitpid(reader, NULL, 0), reader);
    free(bytes);
    return written;
}

static void writes_to_slow_readers(void **state)
{
    assert_int_equal(write_to_reader(300000, 30000, 5, INT64_MAX), 300000);
    assert_true(write_to_reader(1 << 22, 8192, 50, 300) < 1 << 22); // no longer than asked
}

static void makes_directories(void **state)
{
    struct error error = {0};
    struct stat status;
    assert_int_equal(file_make_directory(in_directory("a/b/c"), &error), 0);
    assert_int_equal(file_make_directory(in_directory("a/b/c/"), &error), 0);
    assert_int_equal(file_make_directory("/", &error), 0);
    assert_int_equal(stat(in_directory("a/b/c"), &status), 0);
    assert_int_equal(file_make_directory(in_directory("target"), &error), -1);
    assert_string_equal(error.code, "already_exists");
    error_clear(&error);
    assert_int_equal(file_make_directory(in_directory("target/below"), &error), -1);
    assert_string_equal(error.code, "not_a_directory");
    error_clear(&error);
    assert_int_equal(file_make_directory("", NULL), -1);
}

static void makes_private_directories(void **state)
{
    struct error error = {0};
    struct stat status;
    assert_int_equal(file_make_private_directory(in_directory("private"), &error), 0);
    assert_int_equal(stat(in_directory("private"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(file_make_private_directory(in_directory("private"), &error), 0);
    assert_int_equal(chmod(in_directory("private"), 0750), 0);
    assert_int_equal(file_make_private_directory(in_directory("private"), &error), -1);
    assert_string_equal(error.code, "permission_denied");
    error_clear(&error);
    assert_int_equal(chmod(in_directory("private"), 0700), 0);
    assert_int_equal(symlink("private", in_directory("link to it")), 0);
    assert_int_equal(file_make_private_directory(in_directory("link to it"), &error), -1);
    error_clear(&error);
}

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    interrupt_install();
    return make_directory(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_up_to_its_limit),
        cmocka_unit_test(reads_a_pipe_that_is_written_slowly),
        cmocka_unit_test(is_locked_by_one),
        cmocka_unit_test(appends_to_regular_files_only),
        cmocka_unit_test(gives_up_on_a_reader_that_does_not_read),
        cmocka_unit_test(does_not_wait_for_a_terminal_that_nobody_reads),
        cmocka_unit_test(writes_to_slow_readers),
        cmocka_unit_test(makes_directories),
        cmocka_unit_test(makes_private_directories),
    };
    return cmocka_run_group_tests(tests, set_up, remove_directory);
}
