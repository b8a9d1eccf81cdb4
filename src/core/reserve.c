// SPDX-License-Identifier: Apache-2.0
// Memory for the end of a starved job, see reserve.h.
#include "core/reserve.h"

#include <stdlib.h>

enum { RESERVE_BYTES = 4 << 20 };

static void *reserve;

bool reserve_keep(void)
{
    reserve = malloc(RESERVE_BYTES);
    return reserve != NULL;
}

void reserve_release(void)
{
    free(reserve);
    reserve = NULL;
}
