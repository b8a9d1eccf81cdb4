// SPDX-License-Identifier: Apache-2.0
// When OpenSSL learns what the processor can do.
//
// On x86-64 it asks before main begins. Under a hypervisor each of those questions (CPUID) leaves the guest, which a
// profile of an empty job shows. So the release build asks at the first use that is worth it; until then OpenSSL's
// portable code does the same work more slowly.
#ifndef SBA_CORE_CRYPTO_H
#define SBA_CORE_CRYPTO_H

// Before much is hashed, and before TLS.
void crypto_ask_processor(void);

#endif
