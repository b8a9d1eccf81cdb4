// SPDX-License-Identifier: Apache-2.0
// Copies bytes. In the release for x86-64, memcpy and memmove are these functions: musl's use "rep movs", which takes
// 45 ns to start on today's processors, and most copies of a job are of less than 64 bytes. Neither can fail.
#ifndef SBA_CORE_COPY_H
#define SBA_CORE_COPY_H

#include <stddef.h>

// As memcpy and memmove.
void *copy_apart(void *restrict to, const void *restrict from, size_t size);
void *copy_over(void *to, const void *from, size_t size);

#endif
