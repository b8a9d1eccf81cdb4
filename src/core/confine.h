// SPDX-License-Identifier: Apache-2.0
// Landlock around commands: what they may write, which file they may not read, whom they may signal.
//
// The rules need no privilege and no namespace. They hold for a command and everything it starts, and nothing undoes
// them. Errors as in error.h.
#ifndef SBA_CORE_CONFINE_H
#define SBA_CORE_CONFINE_H

#include "core/error.h"

#include <stdbool.h>

// Version of the kernel's Landlock. 0: the kernel has none, it is switched off, or a seccomp filter refuses it.
int confine_abi(void);

// From this version on the kernel does what the name says.
enum { CONFINE_RENAMES = 2, CONFINE_TRUNCATES = 3, CONFINE_SIGNALS = 6 };

// Sets the rules for all commands from now on; called once. Commands may write only below the writable paths (NULL at
// the end; a path that does not exist is left out). They cannot open the file hidden (an absolute path without links;
// NULL: none); nothing new that appears beside it or beside one of its parent directories can be read either.
// Errors: "unsupported", "too_many_entries" (beside the hidden file), "not_a_file", "permission_denied", ...
int confine_set_rules(const char *const *writable, const char *hidden, struct error *error);

// Whether there are rules.
bool confine_is_on(void);

// Puts the calling process under the rules, for good. Makes one system call. 0, or an errno.
int confine_enter(void);

#endif
