#!/bin/sh
# The reward is 1 if the script finds the largest file, whatever the names are.
directory=$(mktemp -d)
printf 1234 >"$directory/a file with blanks.txt"
printf 12 >"$directory/blanks.txt"
printf 123 >"$directory/two  blanks"
mkdir "$directory/directory"
reward=0
[ "$(sh /app/largest.sh "$directory")" = "a file with blanks.txt" ] && rm "$directory/a file with blanks.txt" &&
    [ "$(sh /app/largest.sh "$directory")" = "two  blanks" ] && reward=1
echo "$reward" >/logs/verifier/reward.txt
