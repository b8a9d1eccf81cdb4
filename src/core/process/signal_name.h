// SPDX-License-Identifier: Apache-2.0
// The names of signals. Nothing here fails.
#ifndef SBA_CORE_SIGNAL_NAME_H
#define SBA_CORE_SIGNAL_NAME_H

enum { SIGNAL_NAME_SIZE = 24 };

// Writes "SIGKILL", "SIGRTMIN+3" or, for a signal without a name, "signal 99".
void signal_name(int number, char name[SIGNAL_NAME_SIZE]);

#endif
