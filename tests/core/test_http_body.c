// SPDX-License-Identifier: Apache-2.0
// Bodies made of parts: every piece in every size of room, begun anew, with files that change meanwhile.
#include "core/http/http_body.h"

#include "check.h"

#include <fcntl.h>

enum { FILE_SIZE = 40000 }; // more than is read at once, and no multiple of it or of 3

static char content[FILE_SIZE];

static int new_file(size_t size)
{
    char name[] = "/tmp/sba-body-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    for (size_t i = 0; i < FILE_SIZE; i++)
        content[i] = (char)(i * 7 + i / 251);
    assert_int_equal(write(fd, content, size), (ssize_t)size);
    return fd;
}

static struct http_part file_part(int fd, size_t size)
{
    struct http_part part = {.fd = fd};
    struct text_sha256 digest;
    text_sha256_init(&digest);
    text_sha256_update(&digest, content, size);
    text_sha256_final(&digest, part.sha256);
    return part;
}

static struct http_body *new_body(int fd, size_t size)
{
    struct error error = {0};
    struct http_part parts[] = {
        {.bytes = "<", .size = 1}, file_part(fd, size), {.bytes = "", .size = 0}, {.bytes = ">>", .size = 2}};
    struct http_body *body = http_body_new(parts, 4, &error);
    assert_non_null(body);
    return body;
}

// Reads the whole in pieces of at most room bytes. -1 where it fails.
static ssize_t read_whole(struct http_body *body, size_t room, struct buffer *out, const char **why)
{
    char piece[70000];
    for (;;) {
        ssize_t count = http_body_read(body, piece, room, why);
        if (count <= 0)
            return count < 0 ? -1 : (ssize_t)out->size;
        assert_true((size_t)count <= room);
        buffer_append(out, piece, (size_t)count);
    }
}

static void comes_whole_in_every_room(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 3, 12287, 12288, 12289, FILE_SIZE}, rooms[] = {1, 2, 3, 5, 16384, 70000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++) {
            const char *why = NULL;
            int fd = new_file(sizes[i]);
            struct http_body *body = new_body(fd, sizes[i]);
            close(fd); // the body has its own
            struct buffer wanted = {0}, got = {0};
            buffer_append(&wanted, "<", 1);
            text_base64_encode(content, sizes[i], &wanted);
            buffer_append(&wanted, ">>", 2);
            assert_int_equal(http_body_size(body), wanted.size);
            for (int again = 0; again < 2; again++) {
                got.size = 0;
                assert_int_equal(read_whole(body, rooms[k], &got, &why), (ssize_t)wanted.size);
                assert_memory_equal(got.data, wanted.data, wanted.size);
                http_body_rewind(body);
            }
            buffer_free(&wanted);
            buffer_free(&got);
            http_body_free(body);
        }
}

static void begins_anew_from_anywhere(void **state)
{
    char piece[20000];
    const char *why = NULL;
    int fd = new_file(FILE_SIZE);
    struct http_body *body = new_body(fd, FILE_SIZE);
    struct buffer got = {0};
    assert_int_equal(http_body_read(body, piece, sizeof piece, &why), sizeof piece);
    http_body_rewind(body);
    assert_int_equal(read_whole(body, 1000, &got, &why), http_body_size(body));
    buffer_free(&got);
    http_body_free(body);
    close(fd);
}

static void never_ends_where_a_file_changed(void **state)
{
    for (int change = 0; change < 3; change++) {
        char piece[1000];
        const char *why = NULL;
        int fd = new_file(FILE_SIZE);
        struct http_body *body = new_body(fd, FILE_SIZE);
        struct buffer got = {0};
        assert_int_equal(http_body_read(body, piece, sizeof piece, &why), sizeof piece);
        if (change == 0)
            assert_int_equal(ftruncate(fd, 30000), 0);
        else if (change == 1)
            assert_int_equal(ftruncate(fd, 0), 0);
        else
            assert_int_equal(pwrite(fd, "!", 1, FILE_SIZE - 1), 1);
        assert_int_equal(read_whole(body, 70000, &got, &why), -1);
        assert_string_equal(why, "the file changed meanwhile");
        buffer_free(&got);
        http_body_free(body);
        close(fd);
    }
}

static void sends_no_more_of_a_file_that_grew(void **state)
{
    const char *why = NULL;
    int fd = new_file(1000);
    struct http_body *body = new_body(fd, 1000);
    struct buffer got = {0};
    assert_int_equal(pwrite(fd, "more", 4, 1000), 4);
    assert_int_equal(read_whole(body, 70000, &got, &why), http_body_size(body));
    buffer_free(&got);
    http_body_free(body);
    close(fd);
}

static void says_why_a_file_cannot_be_had(void **state)
{
    struct error error = {0};
    struct http_part part = {.fd = -1};
    assert_null(http_body_new(&part, 1, &error));
    assert_string_equal(error.message, "cannot send a file: Bad file descriptor");
    error_clear(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_whole_in_every_room),       cmocka_unit_test(begins_anew_from_anywhere),
        cmocka_unit_test(never_ends_where_a_file_changed), cmocka_unit_test(sends_no_more_of_a_file_that_grew),
        cmocka_unit_test(says_why_a_file_cannot_be_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
