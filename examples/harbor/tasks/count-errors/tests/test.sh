#!/bin/sh
# The reward is 1 for the right client and count.
reward=0
[ "$(cat /app/answer.txt)" = '192.0.2.12 89' ] && reward=1
echo "$reward" >/logs/verifier/reward.txt
