# SPDX-License-Identifier: Apache-2.0
# What the checks of the tasks share. A check runs in a copy of the workspace that was left. ANSWER is a file with the final answer; WORD is
# a random word that only the check knows, BASE the repository that the workspace began as.

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

# hidden FILE: writes a test from stdin. It prints @WORD@ at its end, so that a solution which ends the process early does not pass.
hidden() {
    sed "s/@WORD@/$WORD/" >"$1"
}

# answered RIGHT: the last line "ANSWER: ..." of the answer says it.
answered() {
    said=$(tr -d '*`' <"$ANSWER" | sed -n 's/^[ ]*ANSWER:[ ]*//p' | tail -n 1 | sed 's/[ .]*$//')
    [ "$said" = "$1" ] || fail "the answer is '$said'"
}

# code FILE...: the files without their comments.
code() {
    case $1 in
        *.sh | *.py) sed 's/\(^\|[[:blank:]]\)#.*//' "$@" ;;
        *) cat "$@" | sed 's://.*::' | tr '\n' '\001' | sed 's:/\*[^*]*\**\([^/*][^*]*\*\**\)*/: :g' | tr '\001' '\n' ;;
    esac
}

# suite: the tests that the repository of the task has pass, as they were.
suite() {
    rm -rf tests && cp -r "$BASE/tests" .
    hidden suite.py <<'END'
import unittest
with open("log", "w") as log:
    result = unittest.TextTestRunner(log).run(unittest.defaultTestLoader.discover("tests", top_level_dir="."))
print(" ".join(test.id() for test, _ in result.failures + result.errors) or "@WORD@")
END
    expect "$WORD" python3 suite.py
}
