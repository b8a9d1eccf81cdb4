#!/bin/sh
cat >/app/greet.sh <<'SCRIPT'
#!/bin/sh
shout=
if [ "$1" = -s ]; then
    shout=yes
    shift
fi
if [ $# -ne 1 ]; then
    echo 'usage: greet.sh [-s] NAME' >&2
    exit 2
fi
if [ "$shout" ]; then
    printf 'Hello, %s!\n' "$1" | tr '[:lower:]' '[:upper:]'
else
    printf 'Hello, %s!\n' "$1"
fi
SCRIPT
