// SPDX-License-Identifier: Apache-2.0
// A memory reserve, so that a job that runs out of memory can still undo its work and write its result.
#ifndef SBA_CORE_RESERVE_H
#define SBA_CORE_RESERVE_H

#include <stdbool.h>

// Allocates the reserve. It is never touched, so it takes only address space. False: memory is out.
bool reserve_keep(void);

// Frees the reserve, if there is one.
void reserve_release(void);

#endif
