# SPDX-License-Identifier: Apache-2.0
"""Waiting for what another process does, without a bet on how long it takes."""
import time

GUARD = 120  # seconds after which something hangs


def wait_for(condition, what):
    """Waits until condition() holds, and returns what it gave; raises AssertionError where it never does."""
    end = time.monotonic() + GUARD
    while not (holds := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.01)
    return holds
