// SPDX-License-Identifier: Apache-2.0
// The mode of our terminal, which a command may change: /dev is writable. Nothing here fails.
#ifndef SBA_CORE_TERMINAL_MODE_H
#define SBA_CORE_TERMINAL_MODE_H

// Remembers the mode of the terminal that is one of the standard streams, if there is one.
void terminal_mode_keep(void);

// Sets that mode again, unless another process group has the terminal now.
void terminal_mode_restore(void);

#endif
