# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal (tmux): keys go in, and a test waits for what the screen shows."""
import os
import shlex
import shutil
import subprocess
import tempfile
import time

PATIENCE = 60  # seconds; only what hangs meets it


class Terminal:
    """Runs argv with nothing but these variables; the shell prints "status N" when it has ended."""

    def __init__(self, argv, env=None, columns=80, rows=24, directory="/"):
        self.directory = tempfile.mkdtemp(prefix="sba-terminal-")
        variables = {"PATH": os.environ["PATH"], **(env or {})}
        words = ["env", "-i", *(f"{name}={value}" for name, value in variables.items()), *argv]
        script = f"trap : INT; {shlex.join(words)}; echo status $?; exec sleep {PATIENCE * 5}"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-c", directory, "-x", str(columns), "-y", str(rows), "sh",
                  "-c", script)

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-u", "-S", f"{self.directory}/socket", *arguments], check=True,
                              timeout=PATIENCE, text=True,
                              env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}, stdout=subprocess.PIPE).stdout

    def close(self):
        self.tmux("kill-server")
        shutil.rmtree(self.directory, ignore_errors=True)  # the server removes its socket, too

    def type(self, text):
        self.tmux("send-keys", "-l", "--", text)

    def press(self, *keys):
        """Keys by tmux's names: Enter, Left, C-c, ..."""
        self.tmux("send-keys", *keys)

    def enter(self, line):
        self.type(line)
        self.press("Enter")

    def screen(self):
        """Without blanks at their ends and empty lines below."""
        return "\n".join(line.rstrip() for line in self.tmux("capture-pane", "-p").split("\n")).rstrip("\n")

    def wait(self, fits, what):
        """Returns the screen that fits. what: for the message of a test that waited in vain."""
        end = time.monotonic() + PATIENCE
        while not fits(screen := self.screen()):
            if time.monotonic() > end:
                raise AssertionError(f"the screen never showed {what}:\n{screen}")
            time.sleep(0.02)
        return screen

    def wait_for(self, text):
        return self.wait(lambda screen: text in screen, repr(text))

    def wait_for_end(self, *lines):
        """The last one without the blanks at its end."""
        text = "\n".join(lines)
        return self.wait(lambda screen: ("\n" + screen).endswith("\n" + text), f"{text!r} at its end")

    def children(self):
        """The ids of the processes that the shell runs."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        return [int(word)
                for word in subprocess.run(["pgrep", "-P", shell], text=True, stdout=subprocess.PIPE).stdout.split()]
