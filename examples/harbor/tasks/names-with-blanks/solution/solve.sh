#!/bin/sh
cat >/app/largest.sh <<'SCRIPT'
#!/bin/sh
# largest.sh DIRECTORY: prints the name of the largest regular file.
largest='' size=-1
for path in "$1"/*; do
    [ -f "$path" ] || continue
    bytes=$(wc -c <"$path")
    [ "$bytes" -gt "$size" ] && largest=${path##*/} size=$bytes
done
printf '%s\n' "$largest"
SCRIPT
