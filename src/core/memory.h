// SPDX-License-Identifier: Apache-2.0
// malloc for those who remember the size of what they hold. A large block is a mapping of its own, in huge pages where
// the kernel has them: a page fault for every 4 KiB would cost more than all that is done to their bytes. It grows
// without being copied.
#ifndef SBA_CORE_MEMORY_H
#define SBA_CORE_MEMORY_H

#include <stddef.h>

// realloc: old_size is what block was asked for with (0: block is NULL), size 0 frees it. NULL where memory is out, the
// block is then as it was. A block of less than MEMORY_LARGE bytes may come from malloc, and go to free.
void *memory_resize(void *block, size_t old_size, size_t size);

enum { MEMORY_LARGE = 2 << 20 }; // a huge page: at most half of a mapping is not used

#endif
