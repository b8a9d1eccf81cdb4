// SPDX-License-Identifier: Apache-2.0
// Errors of core, see error.h.
#include "core/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int number;
    const char *code;
} codes[] = {
    {ENOENT, "not_found"},         {ENOTDIR, "not_a_directory"}, {EISDIR, "is_a_directory"},
    {EACCES, "permission_denied"}, {EPERM, "permission_denied"}, {EROFS, "read_only"},
    {EEXIST, "already_exists"},    {ENOSPC, "no_space"},         {EDQUOT, "no_space"},
    {ELOOP, "path_escape"},        {EXDEV, "path_escape"},       {ENAMETOOLONG, "name_too_long"},
    {EMFILE, "too_many_files"},    {ENFILE, "too_many_files"},   {ENOMEM, "out_of_memory"},
    {EAGAIN, "out_of_processes"},  {EINVAL, "invalid"},          {ENOEXEC, "not_executable"},
    {EFBIG, "file_too_large"},
};

const char *error_code_of(int number)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].number == number)
            return codes[i].code;
    return "io_error";
}

// Where memory is out, the text stays as it is.
static char *with_reason(char *text, const char *reason)
{
    char *whole = realloc(text, strlen(text) + sizeof ": " + strlen(reason));
    return whole ? strcat(strcat(whole, ": "), reason) : text;
}

int error_set(struct error *error, const char *code, int number, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;

    if (!error)
        return -1;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    if (text && number)
        text = with_reason(text, strerror(number));
    for (char *c = text; c && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?'; // a name may hold any byte, but a message is one line
    error->code = code;
    error->number = number;
    error->message = text;
    return -1;
}

void error_clear(struct error *error)
{
    free(error->message);
    *error = (struct error){0};
}
