// SPDX-License-Identifier: Apache-2.0
// Memory that is kept back from the start, so that a job that runs out can still undo its work and write its result.
#ifndef SBA_CORE_RESERVE_H
#define SBA_CORE_RESERVE_H

#include <stdbool.h>

// Sets the reserve aside. It is never touched, so it takes address space only. False: there is no room for it.
bool reserve_keep(void);

// Frees the reserve. Harmless when it is gone.
void reserve_release(void);

#endif
