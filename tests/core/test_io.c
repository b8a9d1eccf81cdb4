// SPDX-License-Identifier: Apache-2.0
// core/io and core/spool, on a kernel that takes a part of what is written, or nothing, and one that has no memfd.
#include "core/base/io.h"

#include "check.h"
#include "core/base/spool.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>

static ssize_t taken; // by each write; negative: an errno

static ssize_t take(size_t size)
{
    if (taken < 0)
        return errno = (int)-taken, -1;
    return (size_t)taken < size ? taken : (ssize_t)size;
}

// These take the place of the C library's.
ssize_t writev(int fd, const struct iovec *parts, int count)
{
    ssize_t size = take(parts->iov_len);
    return size <= 0 ? size : write(fd, parts->iov_base, (size_t)size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    ssize_t some = take(size);
    return some <= 0 ? some : lseek(fd, offset, SEEK_SET) < 0 ? -1 : write(fd, bytes, (size_t)some);
}

int memfd_create(const char *name, unsigned flags)
{
    return errno = ENOSYS, -1;
}

static struct spool new_spool(void)
{
    struct spool spool;
    assert_int_equal(spool_open(&spool, directory), 0);
    return spool;
}

static void check_spool(const struct spool *spool, const char *wanted)
{
    struct buffer got = {0};
    assert_int_equal(spool_read(spool, 0, (size_t)spool->size, &got), 0);
    check_bytes(&got, wanted, strlen(wanted));
    buffer_free(&got);
}

static void writes_all_of_it(void **state)
{
    struct spool spool = new_spool();
    taken = 3;
    assert_int_equal(spool_append(&spool, "0123456789", 10), 0);
    assert_int_equal(spool_append(&spool, "ab", 2), 0);
    check_spool(&spool, "0123456789ab");
    assert_int_equal(lseek(spool.fd, 0, SEEK_END), 12);
    assert_int_equal(io_write(spool.fd, "wxyz", 4, IO_OWN), 0);
    spool.size = 16;
    check_spool(&spool, "0123456789abwxyz");
    close(spool.fd);
}

static void fails_where_nothing_is_taken(void **state)
{
    struct spool spool = new_spool();
    static const struct {
        ssize_t taken;
        int number;
    } cases[] = {{0, EIO}, {-ENOSPC, ENOSPC}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        taken = cases[i].taken;
        assert_int_equal(spool_append(&spool, "x", 1), -1);
        assert_int_equal(errno, cases[i].number);
        assert_int_equal(io_write(spool.fd, "x", 1, IO_OWN), -1);
        assert_int_equal(errno, cases[i].number);
        assert_int_equal(spool.size, 0);
    }
    close(spool.fd);
}

static void is_on_no_disk_where_memory_was_wanted(void **state)
{
    struct spool spool;
    assert_int_equal(spool_open(&spool, ""), -1);
    assert_int_equal(errno, ENOSYS);
    assert_int_equal(spool.fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_all_of_it),
        cmocka_unit_test(fails_where_nothing_is_taken),
        cmocka_unit_test(is_on_no_disk_where_memory_was_wanted),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
