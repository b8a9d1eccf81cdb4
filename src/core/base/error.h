// SPDX-License-Identifier: Apache-2.0
// An error: a stable code for programs, one line for people.
//
// Error contract of core: a function that can fail returns -1 or NULL on failure, and fills *error, unless the caller
// gives NULL because it does not matter why. On success it returns 0 or a valid value, and leaves *error alone. The
// caller clears a filled error.
#ifndef SBA_CORE_ERROR_H
#define SBA_CORE_ERROR_H

#include <errno.h>

struct error {
    const char *code; // static string: "not_found", "path_escape", "io_error", ...; NULL: no error
    int number;       // errno if there is one, else 0
    char *message;    // owned; what was done, to what, why it failed
};

// Fills *error; NULL: does nothing. Control characters become ?. If number is not 0, it is kept as errno, and its text
// follows the message. Returns -1.
int error_set(struct error *error, const char *code, int number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// The code of an errno: ENOENT "not_found", EACCES "permission_denied", ENOSPC "no_space", ... else "io_error".
const char *error_code_of(int number);

// error_set with the code of number. Returns -1.
#define error_system(error, number, ...) error_set(error, error_code_of(number), number, __VA_ARGS__)

// The same where memory is out.
#define error_memory(error, ...) error_system(error, ENOMEM, __VA_ARGS__)

void error_clear(struct error *error);

#endif
