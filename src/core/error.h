// SPDX-License-Identifier: Apache-2.0
// What went wrong in the world: a stable code for programs, one line for people.
//
// Error contract of core: a function that can fail returns 0 or a valid value on success and -1 or NULL on failure, and
// then has filled *error, which is never NULL. On success *error is left alone. The caller clears what was filled.
#ifndef SBA_CORE_ERROR_H
#define SBA_CORE_ERROR_H

struct error {
    const char *code; // static string: "not_found", "path_escape", "io_error", ...; NULL: no error
    int number;       // errno where there is one, else 0
    char *message;    // owned; what was being done, to what, why it failed
};

// Fills *error (control characters become ?; errno is kept in it when number is not 0 and said in words after the
// message). Returns -1.
int error_set(struct error *error, const char *code, int number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// The code that fits an errno: ENOENT "not_found", EACCES "permission_denied", ENOSPC "no_space", ... else "io_error".
const char *error_code_of(int number);

// error_set with the code that fits number. Returns -1.
#define error_system(error, number, ...) error_set(error, error_code_of(number), number, __VA_ARGS__)

void error_clear(struct error *error);

#endif
