# SPDX-License-Identifier: Apache-2.0
# What the checks of the tasks share. A check runs in a copy of the workspace that was left; ANSWER is a file with the final answer.

# Ends the check: the task is not solved, and why.
fail() {
    echo "$*" >&2
    exit 1
}

# expect OUTPUT COMMAND...: a command ends well and prints this, on stdout and stderr.
expect() {
    wanted=$1 && shift
    got=$("$@" 2>&1) || fail "'$*' fails: $got"
    [ "$got" = "$wanted" ] || fail "'$*' prints '$got' instead of '$wanted'"
}

# answered RIGHT WRONG...: the answer holds the word RIGHT and none of the words WRONG, which are basic regular expressions.
answered() {
    grep -qw -e "$1" "$ANSWER" || fail "the answer does not say $1"
    shift
    for wrong; do
        ! grep -qw -e "$wrong" "$ANSWER" || fail "the answer says $wrong too"
    done
}
