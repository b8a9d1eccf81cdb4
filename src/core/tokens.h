// SPDX-License-Identifier: Apache-2.0
// How many tokens a text costs a model, estimated by kind of text and rather too high than too low: no tokenizer is at
// hand, and each model has its own. Nothing here fails.
#ifndef SBA_CORE_TOKENS_H
#define SBA_CORE_TOKENS_H

#include <stddef.h>

struct tokens {
    size_t words; // prose and source code: 3 to 5 bytes a token
    size_t dense; // digits, hexadecimal, base64, control bytes: 1 to 1.5 bytes a token
    size_t other; // what is not ASCII: 1.3 to 1.5 bytes a token, where a model was not trained for the script
};

// In linear time.
struct tokens tokens_estimate(const char *utf8, size_t size);

#endif
