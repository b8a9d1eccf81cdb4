// SPDX-License-Identifier: Apache-2.0
// Who the runner is: the hardening of its own process, and whom it becomes.
#ifndef SBA_CORE_IDENTITY_H
#define SBA_CORE_IDENTITY_H

#include "core/error.h"

// First thing in main: not dumpable (a child of the same user can read neither our memory nor our environment), no new
// privileges, subreaper, SIGPIPE ignored, relocated data read-only, descriptors 0 to 2 open and none above them for a
// command. Ends the program where the kernel refuses one of them.
void identity_harden(void);

// Becomes the user for good: groups, gid, uid. The user is "UID", "UID:GID", "name" or "name:group" (as in /etc/passwd;
// a bare UID without an entry takes the GID of the same number). Errors: "unknown_user", "permission_denied",
// "invalid".
int identity_become(const char *user, struct error *error);

// Removes a variable from the environment and overwrites its bytes, so that /proc/self/environ does not show them.
void identity_forget_variable(const char *name);

#endif
