#!/bin/bash
declare -a names=("$@")
total=0
for ((i = 0; i < ${#names[@]}; i++)); do
    if [[ ${names[i]} == *.tmp || ! -f ${names[i]} ]]; then
        continue
    fi
    size=$(wc -c <"${names[i]}")
    ((total += size))
    echo "$((i + 1)) ${names[i]//_/ } $size"
done
echo "total $total"
