// SPDX-License-Identifier: Apache-2.0
// Estimates how many tokens a text costs a model, rather too many than too few. Each model has its own tokenizer, and
// we have none of them. Nothing here fails.
#ifndef SBA_CORE_TOKENS_H
#define SBA_CORE_TOKENS_H

#include <stddef.h>

// Takes linear time. Prose and source code have 3 to 5 bytes a token; digits, hexadecimal, base64 and control bytes 1
// to 1.5; what is not ASCII 1.3 to 1.5, as if the model was not trained for the script.
size_t tokens_estimate(const char *utf8, size_t size);

#endif
