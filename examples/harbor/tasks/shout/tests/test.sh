#!/bin/sh
# The reward is 1 if the script does all that the instruction says.
cd /app || exit
usage='usage: greet.sh [-s] NAME'
refused() { # ARGUMENT...: whether the script says its usage, on stderr only
    said=$(sh greet.sh "$@" 2>/tmp/said)
    [ $? -eq 2 ] && [ -z "$said" ] && [ "$(cat /tmp/said)" = "$usage" ]
}
reward=0
[ "$(sh greet.sh 'Ada Lovelace')" = 'Hello, Ada Lovelace!' ] && [ "$(sh greet.sh -s 'Ada Lovelace')" = 'HELLO, ADA LOVELACE!' ] &&
    refused && refused -s && reward=1
echo "$reward" >/logs/verifier/reward.txt
