// SPDX-License-Identifier: Apache-2.0
// A function for Lua that never returns, and holds malloc's lock most of the time.
#include <stdlib.h>

int hang(void *unused);

int hang(void *unused)
{
    (void)unused;
    for (void *volatile block;;) {
        block = malloc(100);
        free(block);
    }
}
