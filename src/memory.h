// SPDX-License-Identifier: Apache-2.0
// The memory of the Lua state: its blocks are small, many and short-lived.
//
// Blocks of up to 256 KiB are cut from maps, which stay. Larger ones are malloc's, and in a debug build all are, so
// that the sanitizers watch them. For one thread.
#ifndef SBA_MEMORY_H
#define SBA_MEMORY_H

#include <stddef.h>

// Gives a block of old_size bytes (without a block, any number) another size, as realloc does; 0 frees it and gives
// NULL. NULL otherwise means that memory is out; the block stays as it is. Blocks are aligned to 16 bytes.
void *memory_resize(void *block, size_t old_size, size_t size);

#endif
