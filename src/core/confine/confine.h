// SPDX-License-Identifier: Apache-2.0
// Confines commands by Landlock: what they may write, which files they may not read, which processes they may signal.
//
// The rules need no privilege and no namespace. They apply to a command and all its descendants, and cannot be undone.
// Errors as in error.h.
#ifndef SBA_CORE_CONFINE_H
#define SBA_CORE_CONFINE_H

#include "core/base/error.h"

#include <stdbool.h>

// Version of the kernel's Landlock. 0: the kernel has none, it is switched off, or a seccomp filter refuses it.
int confine_abi(void);

// The version from which on the kernel confines these.
enum { CONFINE_RENAMES = 2, CONFINE_TRUNCATES = 3, CONFINE_SIGNALS = 6 };

// Sets the rules for all commands; call it once, before the first of them. Commands may write only below the writable
// paths (NULL at the end; paths that do not exist are ignored). They cannot open the `hidden` files, nor what is in
// `hidden` directories (absolute paths without links, none below another; NULL at the end). New files beside one, or
// beside one of its parent directories, cannot be read either. Errors: "unsupported", "too_late" (a command has run),
// "too_many_entries" (beside a hidden file), "not_a_file", "permission_denied", ...
int confine_set_rules(const char *const *writable, const char *const *hidden, struct error *error);

// The first command is about to run: rules can no longer be set.
void confine_begin(void);

// Whether rules were set.
bool confine_is_on(void);

// Confines the calling process for good. Makes one system call. 0, or an errno.
int confine_enter(void);

#endif
