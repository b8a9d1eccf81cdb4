// SPDX-License-Identifier: Apache-2.0
// Memory for Lua: small blocks from chunks that are never given back, in lists by size; others as memory.h has them.
// Lua knows the size of what it frees, so that a block needs no head. About twice as fast as musl's malloc at this, and
// a start takes a few system calls instead of hundreds.
#ifndef SBA_CORE_ALLOCATOR_H
#define SBA_CORE_ALLOCATOR_H

#include <stddef.h>

// A lua_Alloc. All states share the lists; one thread only. NULL where memory is out, the block is then as it was.
void *allocator(void *unused, void *block, size_t old_size, size_t size);

// Gives back what was kept for the end, so that where memory ran out work can be undone, and what was done be told: all
// but a quarter the first time, all but a quarter of the rest the second, and so on, so that what fails may be tried
// again.
void allocator_spend_reserve(void);

#endif
