// SPDX-License-Identifier: Apache-2.0
// Estimates how many tokens a text costs a model, rather too many than too few. Each model has its own tokenizer, and
// we have none of them. Nothing here fails.
#ifndef SBA_CORE_TOKENS_H
#define SBA_CORE_TOKENS_H

#include <stddef.h>

struct tokens {
    size_t words; // prose and source code: 3 to 5 bytes a token
    size_t dense; // digits, hexadecimal, base64, control bytes: 1 to 1.5 bytes a token
    size_t other; // not ASCII: 1.3 to 1.5 bytes a token, if the model was not trained for the script
};

// Takes linear time.
struct tokens tokens_estimate(const char *utf8, size_t size);

#endif
