// SPDX-License-Identifier: Apache-2.0
// Hardens the runner's own process, and changes its user.
#ifndef SBA_CORE_IDENTITY_H
#define SBA_CORE_IDENTITY_H

#include "core/base/error.h"

#include <stdbool.h>

// Call it first in main. Makes the process not dumpable (children of the same user can read neither our memory nor our
// environment), names it `sba`, sets no_new_privs, makes it a subreaper, ignores SIGPIPE, makes relocated data
// read-only, opens descriptors 0 to 2 and makes all others close-on-exec. False: the kernel refuses, which was said on
// stderr; nothing is to run then.
bool identity_harden(void);

// Changes the user for good: groups, gid, uid. The user is "UID", "UID:GID", "name" or "name:GID" (as in /etc/passwd;
// a bare UID without an entry takes the GID of the same number). Errors: "unknown_user", "permission_denied",
// "invalid".
int identity_become(const char *user, struct error *error);

// Removes a variable from the environment and overwrites its bytes, so that /proc/self/environ does not show them.
void identity_forget_variable(const char *name);

#endif
