// SPDX-License-Identifier: Apache-2.0
// When OpenSSL learns what the processor can do, see crypto.h.
#include "core/crypto.h"

#ifdef SBA_WRAPS_CPUID
#include <stdbool.h>

// The linker's --wrap: calls of OPENSSL_cpuid_setup come to the first, the second is OpenSSL's own.
void __wrap_OPENSSL_cpuid_setup(void);
void __real_OPENSSL_cpuid_setup(void);

void __wrap_OPENSSL_cpuid_setup(void)
{
}

void crypto_ask_processor(void)
{
    static bool asked;
    if (!asked)
        __real_OPENSSL_cpuid_setup();
    asked = true;
}
#else
void crypto_ask_processor(void)
{
}
#endif
