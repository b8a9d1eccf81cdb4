// SPDX-License-Identifier: Apache-2.0
// Bodies made of parts: every piece in every size of room, begun anew, with files that change meanwhile.
#include "core/http/http_body.h"

#include "check.h"

enum { FILE_SIZE = 40000, PARTS = 4 }; // more than is read at once, and no multiple of it or of 3

static char content[FILE_SIZE];
static struct http_part parts[PARTS];

// A body with a file of that size between bytes.
static struct http_body new_body(size_t size)
{
    char name[] = "/tmp/sba-body-XXXXXX";
    struct text_sha256 sha256;
    struct http_part file = {.part = {.fd = mkstemp(name), .size = size}, .base64 = true};
    assert_true(file.part.fd >= 0);
    unlink(name);
    for (size_t i = 0; i < FILE_SIZE; i++)
        content[i] = (char)(i * 7 + i / 251);
    assert_int_equal(write(file.part.fd, content, size), (ssize_t)size);
    text_sha256_init(&sha256);
    text_sha256_update(&sha256, content, size);
    text_sha256_final(&sha256, file.sha256);
    parts[0] = (struct http_part){.part = {.bytes = "<", .size = 1}};
    parts[1] = file;
    parts[2] = (struct http_part){.part = {.bytes = "", .size = 0}};
    parts[3] = (struct http_part){.part = {.bytes = ">>", .size = 2}};
    struct http_body body = {.parts = parts, .count = PARTS};
    http_body_rewind(&body);
    return body;
}

// Reads the whole in pieces of at most room bytes. -1 where it fails.
static ssize_t read_whole(struct http_body *body, size_t room, struct buffer *out, const char **why)
{
    char piece[70000];
    ssize_t count;
    out->size = 0;
    while ((count = http_body_read(body, piece, room, why)) > 0) {
        assert_true((size_t)count <= room);
        buffer_append(out, piece, (size_t)count);
    }
    return count < 0 ? -1 : (ssize_t)out->size;
}

static void comes_whole_in_every_room(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 3, 12287, 12288, 12289, FILE_SIZE}, rooms[] = {8, 9, 1000, 16384, 70000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++) {
            char piece[1000];
            const char *why = NULL;
            struct http_body body = new_body(sizes[i]);
            struct buffer wanted = {0}, got = {0};
            buffer_append(&wanted, "<", 1);
            text_base64_encode(content, sizes[i], &wanted);
            buffer_append(&wanted, ">>", 2);
            assert_int_equal(http_body_size(&body), wanted.size);
            for (int again = 0; again < 2; again++) {
                assert_int_equal(read_whole(&body, rooms[k], &got, &why), (ssize_t)wanted.size);
                assert_memory_equal(got.data, wanted.data, wanted.size);
                http_body_rewind(&body);
                assert_true(http_body_read(&body, piece, sizeof piece, &why) > 0);
                http_body_rewind(&body);
            }
            buffer_free(&wanted);
            buffer_free(&got);
            close(parts[1].part.fd);
        }
}

static void never_ends_where_a_file_changed(void **state)
{
    for (int change = 0; change < 6; change++) {
        char piece[8];
        const char *why = NULL;
        struct http_body body = new_body(FILE_SIZE);
        parts[1].base64 = change < 3;
        struct buffer got = {0};
        assert_int_equal(http_body_read(&body, piece, sizeof piece, &why), 1);
        if (change % 3 == 0)
            assert_int_equal(ftruncate(parts[1].part.fd, 30000), 0);
        else if (change % 3 == 1)
            assert_int_equal(ftruncate(parts[1].part.fd, 0), 0);
        else
            assert_int_equal(pwrite(parts[1].part.fd, "!", 1, FILE_SIZE - 1), 1);
        assert_int_equal(read_whole(&body, 70000, &got, &why), -1);
        assert_string_equal(why, "the file changed meanwhile");
        buffer_free(&got);
        close(parts[1].part.fd);
    }
}

static void sends_no_more_of_a_file_that_grew(void **state)
{
    const char *why = NULL;
    struct http_body body = new_body(1000);
    struct buffer got = {0};
    assert_int_equal(pwrite(parts[1].part.fd, "more", 4, 1000), 4);
    assert_int_equal(read_whole(&body, 70000, &got, &why), http_body_size(&body));
    buffer_free(&got);
    close(parts[1].part.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_whole_in_every_room),
        cmocka_unit_test(never_ends_where_a_file_changed),
        cmocka_unit_test(sends_no_more_of_a_file_that_grew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
