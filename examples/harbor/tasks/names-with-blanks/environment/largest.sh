#!/bin/sh
# largest.sh DIRECTORY: prints the name of the largest regular file.
largest= size=-1
for file in $(ls "$1"); do
    bytes=$(wc -c <"$1/$file" 2>/dev/null) || continue
    [ "$bytes" -gt "$size" ] && largest=$file size=$bytes
done
echo $largest
