// SPDX-License-Identifier: Apache-2.0
// core/file_replace: whoever looks sees the whole old or the whole new content, whatever stands at the path.
#include "core/files/file_replace.h"

#include "check.h"
#include "core/files/file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static int replace(const char *path, const char *content, enum file_way *way, struct error *error)
{
    size_t size = strlen(content);
    const struct part parts[] = {
        {.bytes = content, .size = size / 2},
        {.bytes = ""},
        {.bytes = content + size / 2, .size = size - size / 2},
    };
    return file_replace(path, &(struct parts){parts, 3, 0}, 0640, INT64_MAX, way, error);
}

static void check_content(const char *name, const char *content)
{
    char bytes[256] = {0};
    FILE *file = fopen(in_directory(name), "r");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    assert_int_equal(size, strlen(content));
    assert_string_equal(bytes, content);
}

static void replaces(const char *name, const char *content, enum file_way expected)
{
    struct error error = {0};
    enum file_way way;
    assert_int_equal(replace(in_directory(name), content, &way, &error), 0);
    assert_int_equal(way, expected);
    check_content(name, content);
}

static void replaces_and_leaves_nothing_else(void **state)
{
    struct stat status;
    replaces("plain", "first", FILE_RENAMED);
    replaces("plain", "", FILE_RENAMED);
    replaces("plain", "the second", FILE_RENAMED);
    assert_int_equal(stat(in_directory("plain"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
    assert_int_equal(access(in_directory(".plain.tmp"), F_OK), -1);
}

static void removes_what_a_killed_run_left(void **state)
{
    put(in_directory(".left.tmp"), "half of a res");
    replaces("left", "whole", FILE_RENAMED);
    assert_int_equal(access(in_directory(".left.tmp"), F_OK), -1);
}

static void goes_round_a_directory_in_the_temporary_files_place(void **state)
{
    assert_int_equal(mkdir(in_directory(".round.tmp"), 0700), 0);
    replaces("round", "whole", FILE_RENAMED);
    assert_int_equal(rmdir(in_directory(".round.tmp")), 0);
}

static void replaces_a_link_and_not_what_it_names(void **state)
{
    struct stat status;
    put(in_directory("target"), "untouched");
    assert_int_equal(symlink("target", in_directory("link")), 0);
    replaces("link", "new", FILE_RENAMED);
    check_content("target", "untouched");
    assert_int_equal(lstat(in_directory("link"), &status), 0);
    assert_true(S_ISREG(status.st_mode));
    // A temporary file that is a link is not written through either.
    assert_int_equal(symlink("target", in_directory(".link.tmp")), 0);
    replaces("link", "newer", FILE_RENAMED);
    check_content("target", "untouched");
}

static void check_refused(const char *path, const char *code)
{
    struct error error = {0};
    enum file_way way;
    assert_int_equal(replace(path, "new", &way, &error), -1);
    assert_string_equal(error.code, code);
    error_clear(&error);
}

static void refuses_what_is_no_file(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_int_equal(mkfifo(in_directory("fifo"), 0600), 0);
    check_refused(in_directory("fifo"), "not_a_file");
    assert_int_equal(mkdir(in_directory("directory"), 0700), 0);
    check_refused(in_directory("directory"), "not_a_file");
    check_refused(in_directory("directory/"), "not_a_file");
    check_refused(in_directory("directory/."), "not_a_file");
    snprintf(address.sun_path, sizeof address.sun_path, "%s", in_directory("socket"));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    check_refused(in_directory("socket"), "not_a_file");
    check_refused("/dev/null", "not_a_file");
    check_refused(in_directory("missing/file"), "not_found");
    check_refused(in_directory("target/file"), "not_a_directory");
}

// As an ordinary user, because root may write everywhere.
static void writes_in_place_where_the_directory_takes_no_file(void **state)
{
    assert_int_equal(mkdir(in_directory("closed"), 0755), 0);
    put(in_directory("closed/file"), "something longer than what comes");
    assert_int_equal(chmod(in_directory("closed/file"), 0666), 0);
    assert_int_equal(symlink("file", in_directory("closed/link")), 0);
    assert_int_equal(chmod(in_directory("closed"), 0555), 0);
    assert_int_equal(geteuid() ? 0 : seteuid(54321), 0);
    replaces("closed/file", "short", FILE_IN_PLACE);
    check_refused(in_directory("closed/link"), "path_escape");
    check_refused(in_directory("closed/new"), "permission_denied");
    assert_int_equal(getuid() ? 0 : seteuid(0), 0);
    assert_int_equal(chmod(in_directory("closed"), 0755), 0);
}

// Of a command, which has the same user: the mode that was kept comes back, whatever is missing of it.
static void opens_the_kept_directory_that_somebody_closed(void **state)
{
    static const mode_t closed[] = {0, 0111, 0333, 0444, 0555, 0666};
    struct file_directory known = {0};
    struct stat status;
    assert_int_equal(geteuid() ? 0 : chown(directory, 54321, (gid_t)-1), 0);
    assert_int_equal(geteuid() ? 0 : seteuid(54321), 0);
    assert_int_equal(mkdir(in_directory("kept"), 0755), 0);
    assert_int_equal(file_replace_keep(in_directory("kept/"), &known), 0);
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
        assert_int_equal(chmod(in_directory("kept"), closed[i]), 0);
        replaces("kept/file", "content", FILE_RENAMED);
        assert_int_equal(stat(in_directory("kept"), &status), 0);
        assert_int_equal(status.st_mode & 0777, 0755);
    }
    // Another one stays as it is.
    assert_int_equal(mkdir(in_directory("stranger"), 0755), 0);
    assert_int_equal(chmod(in_directory("stranger"), 0444), 0);
    check_refused(in_directory("stranger/file"), "permission_denied");
    assert_int_equal(stat(in_directory("stranger"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0444);
    assert_int_equal(getuid() ? 0 : seteuid(0), 0);
}

static void fill(char *bytes, size_t size, char first)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(first + (char)(i * i % 61));
}

static void fails_as_changed(const struct part *parts, size_t count)
{
    struct error error = {0};
    enum file_way way;
    const char *path = in_directory("none");
    assert_int_equal(file_replace(path, &(struct parts){parts, count, 0}, 0600, FILE_UNSYNCED, &way, &error), -1);
    assert_string_equal(error.code, "changed");
    error_clear(&error);
    check_content("none", "");
}

// Short spans are read with what is behind them (parts.c): of two files, which others change in between.
static void writes_strings_and_spans(void **state)
{
    enum { COUNT = 5000, SIZE = 100000 };
    static char bytes[2][SIZE];
    static struct part parts[COUNT];
    struct error error = {0};
    enum file_way way;
    int fds[2];
    for (int file = 0; file < 2; file++)
        fds[file] = open(in_directory(file ? "one" : "other"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (int round = 0; round < 2; round++) {
        struct buffer there = {0}, written = {0};
        for (int file = 0; file < 2; file++) {
            fill(bytes[file], SIZE, (char)('!' + 2 * round + file));
            assert_int_equal(pwrite(fds[file], bytes[file], SIZE, 0), SIZE);
        }
        for (size_t i = 0; i < COUNT; i++) {
            size_t offset = i * 19, size = i % 101 ? i % 4 * 20 : 4500;
            parts[i] = i % 2 ? (struct part){.bytes = "abc", .size = 3}
                             : (struct part){.fd = fds[i % 7 == 0], .offset = (off_t)offset, .size = size};
            assert_int_equal(buffer_append(&there, i % 2 ? "abc" : bytes[i % 7 == 0] + offset, parts[i].size), 0);
        }
        assert_int_equal(
            file_replace(in_directory("many"), &(struct parts){parts, COUNT, 0}, 0600, FILE_UNSYNCED, &way, &error), 0);
        assert_true(file_read(in_directory("many"), 1 << 20, true, &written, &error) > 0);
        check_bytes(&written, there.data, there.size);
        buffer_free(&there);
        buffer_free(&written);
    }
    assert_int_equal(file_replace(in_directory("none"), &(struct parts){0}, 0600, FILE_UNSYNCED, &way, &error), 0);
    fails_as_changed(&(struct part){.fd = fds[0], .offset = SIZE - 2, .size = 3}, 1);
    assert_int_equal(ftruncate(fds[0], SIZE / 2), 0);
    fails_as_changed(parts, COUNT);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaces_and_leaves_nothing_else),
        cmocka_unit_test(removes_what_a_killed_run_left),
        cmocka_unit_test(goes_round_a_directory_in_the_temporary_files_place),
        cmocka_unit_test(replaces_a_link_and_not_what_it_names),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(writes_in_place_where_the_directory_takes_no_file),
        cmocka_unit_test(opens_the_kept_directory_that_somebody_closed),
        cmocka_unit_test(writes_strings_and_spans),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
