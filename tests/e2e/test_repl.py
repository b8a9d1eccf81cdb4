# SPDX-License-Identifier: Apache-2.0
"""The prompt of --lua, as a person at a terminal has it."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import sba
from terminal import Terminal


class PromptCase(sba.SandboxCase):
    def start(self, *, term="xterm-256color", argv=None, env=None, **options):
        variables = {**({} if term is None else {"TERM": term}), **(env or {})}
        terminal = Terminal(argv or [sba.BINARY, "--lua"], variables, directory=str(self.workspace), **options)
        self.addCleanup(terminal.close)
        terminal.wait_for("help() says what is at hand")
        terminal.wait_for_end(">")
        return terminal

    @staticmethod
    def run_line(terminal, line, *shown):
        """What it prints, up to the next prompt."""
        terminal.type(line)
        terminal.wait_for_end("> " + line)
        terminal.press("Enter")
        return terminal.wait_for_end("> " + line, *shown, ">")


class EditingTest(PromptCase):
    def test_a_line_can_be_edited(self):
        terminal = self.start()
        terminal.type("x = 'ac'")
        terminal.press("Left", "Left")
        terminal.type("b")
        terminal.press("Home", "DC")
        terminal.type("y")
        terminal.press("End")
        terminal.type(" .. 'dez'")
        terminal.press("Left", "BSpace", "End")
        terminal.wait_for_end("> y = 'abc' .. 'de'")
        terminal.press("Enter")
        terminal.wait_for_end("> y = 'abc' .. 'de'", ">")
        self.run_line(terminal, "y", '"abcde"')

    def test_a_chunk_of_several_lines_is_one_entry_of_the_history(self):
        terminal = self.start()
        for line, prompt in (("for i = 1, 2 do", ">"), ("print(i * 10)", ">>"), ("end", ">>")):
            terminal.type(line)
            terminal.wait_for_end(f"{prompt} {line}")
            terminal.press("Enter")
        terminal.wait_for_end(">> end", "10", "20", ">")
        terminal.press("Up")
        terminal.wait_for_end("> for i = 1, 2 do", "print(i * 10)", "end")
        terminal.press("Enter")
        terminal.wait_for_end("end", "10", "20", ">")


class CompletionTest(PromptCase):
    def complete(self, terminal, typed, completed, *shown):
        terminal.type(typed)
        terminal.wait_for_end("> " + typed)
        terminal.press("Tab")
        terminal.wait_for_end(*shown, "> " + completed)
        terminal.press("C-c")
        terminal.wait_for_end(f"> {completed}^C", ">")

    def test_names_of_all_kinds(self):
        terminal = self.start()
        self.run_line(terminal, "directory = native.workspace.open '.'")
        self.run_line(terminal, "thing = { first_field = { nested_one = 1 } }")
        for typed, completed in (("direc", "directory"), ("thing.first_field.ne", "thing.first_field.nested_one"),
                                 ("sba.util.js", "sba.util.json"), ("directory:snap", "directory:snapshot"),
                                 ("s:nothing", "s:nothing"), ("native.wor", "native.workspace")):
            self.complete(terminal, typed, completed)

    def test_nothing_is_run(self):
        terminal = self.start()
        self.run_line(terminal, "t = setmetatable({}, { __index = function() ran = true end })")
        self.complete(terminal, "t.field.x", "t.field.x")
        self.run_line(terminal, "ran", "nil")


class SessionTest(PromptCase):
    def test_control_c_stops_what_runs_and_no_more(self):
        terminal = self.start()
        for code in ("while true do end", "while true do pcall(function() while true do end end) end",
                     "repeat until select(2, native.interrupt.sleep(3600)) and false",
                     "native.process.run{argv={'sleep','3600'},env={'PATH=/bin'},output_limit=9,"
                     "directory=native.workspace.open('.'):directory('.')} while true do end"):
            terminal.enter(f"io.write('on\\n') {code}")
            terminal.wait(lambda screen: "\non" in screen, "that it runs")
            terminal.press("C-c")
            terminal.wait(lambda screen: "interrupted" in screen and screen.endswith("\n>"), "that it was stopped")
            terminal.enter("x = io.write('\\27[H\\27[2J')")  # an empty screen for the next
            terminal.wait(lambda screen: screen == ">", "an empty screen")
        self.run_line(terminal, "1 + 1", "2")

    def test_control_c_twice_ends_what_nothing_stops(self):
        endless = "coroutine.wrap(function() io.write('on\\n') io.flush() while true do end end)()"
        script = self.put("endless.lua", endless)
        process = subprocess.Popen([sba.BINARY, "--lua", str(script)], stdout=subprocess.PIPE, **sba.ordinary_user())
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"on\n")
        while process.poll() is None:  # the second counts from a second after the first on
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        self.assertEqual(process.returncode, 130)

    def test_control_c_drops_a_line_and_a_half_typed_chunk(self):
        terminal = self.start()
        terminal.type("abcd")
        terminal.press("Left", "Left", "BSpace", "End")
        terminal.wait_for_end("> acd")
        terminal.press("C-c")
        terminal.wait_for_end("> acd^C", ">")
        terminal.enter("for i = 1, 2 do")
        terminal.wait_for_end(">>")
        terminal.press("C-c")
        terminal.wait_for_end(">> ^C", ">")
        self.run_line(terminal, "2 + 2", "4")

    def test_control_d_ends_it(self):
        terminal = self.start()
        terminal.press("C-d")
        terminal.wait_for_end("status 0")

    def test_its_exit_status_is_that_of_os_exit(self):
        terminal = self.start()
        terminal.enter("os.exit(7)")
        terminal.wait_for_end("status 7")

    def test_sigterm_ends_it_and_leaves_the_terminal_in_order(self):
        terminal = self.start(argv=["sh", "-c", f"{sba.BINARY} --lua; echo status $?; stty -a"])
        terminal.type("half a line")
        terminal.wait_for_end("> half a line")
        shell = terminal.children()[0]
        program = int(subprocess.run(["pgrep", "-P", str(shell)], text=True, stdout=subprocess.PIPE).stdout.split()[0])
        os.kill(program, signal.SIGTERM)
        screen = terminal.wait(lambda screen: "status 143" in screen and "icrnl" in screen, "the state of the terminal")
        self.assert_says(screen.replace("\n", " "), " icanon", " echo ", " icrnl", " opost", " isig")

    def test_errors_are_told_and_do_not_end_it(self):
        terminal = self.start()
        terminal.enter("local function f() error('oh no') end f()")
        screen = terminal.wait(lambda screen: screen.endswith("in main chunk\n>"), "a traceback")
        self.assertIn("\nstdin:1: oh no\nstack traceback:\n", screen)
        self.assertNotRegex(screen, "sba/repl|xpcall")
        self.run_line(terminal, "x x", "stdin:1: syntax error near 'x'")
        self.run_line(terminal, "error { code = 'not_found', message = 'no such thing' }", "not_found: no such thing")
        self.run_line(terminal, "1", "1")

    def test_help(self):
        terminal = self.start(rows=60)
        terminal.enter("help()")
        terminal.wait_for("  write_file  ")
        terminal.wait_for("native.workspace")
        terminal.wait_for("result(file)")
        terminal.enter('help "list_tree"')
        terminal.wait_for("list_tree: ")
        for name, shown in (("sba.util.retry", "function retry.after(value, milliseconds, now)"),
                            ("native.file", "is_locked fun("), ("native.root", "chmod fun("),
                            ("step", "step(type, arguments, places)"), ("read_file", "start_line"),
                            ("nonsense", "nothing is called nonsense here;")):
            terminal.enter(f'help "{name}"')
            terminal.wait_for(shown)

    def test_a_job_its_prompt_and_a_step(self):
        self.put("good.json", json.dumps(self.job(self.read_file("a"), context={"task_context": "Count the mills."})))
        self.put("bad.json", json.dumps(self.job(self.read_file("a", colour=1), max_runtime_seconds=0)))
        terminal = self.start()
        self.run_line(terminal, "job 'good.json'.steps[1].type", '"read_file"')
        self.run_line(terminal, "prompt 'good.json':find('Count the mills.', 1, true) > 0", "true")
        self.run_line(terminal, "job 'bad.json'", "schema_validation: not valid:",
                      "  /constraints/max_runtime_seconds: expected an integer from 1, got the number 0",
                      '  /steps/0/arguments/colour: unknown field "colour"')
        self.run_line(terminal, "step('write_file', { path = 'made', content = 'x' }).created", "true")
        self.assertEqual((self.workspace / "made").read_bytes(), b"x")
        self.run_line(terminal, "select(2, step('run_command', { command = 'false' })).error_code", '"step_failed"')
        self.run_line(terminal, "#step('run_command', { shell = 'yes | head -c 300000' }).stdout", "300000")


class TerminalTest(PromptCase):
    @unittest.skipIf(sba.IS_DEV, "the dev build reads the machine's terminfo")
    @sba.wants("strace")
    @unittest.skipUnless(sba.UID, "only root's strace reads the paths of a process that is not dumpable")
    def test_no_file_says_what_a_terminal_is(self):
        trace = self.root / "trace"
        terminal = self.start(argv=["strace", "-f", "-o", str(trace), "-e", "trace=file", sba.BINARY, "--lua"],
                              env={"HOME": str(self.workspace), "TERMINFO": str(self.workspace)})
        self.run_line(terminal, "1 + 1", "2")
        opened = [line for line in trace.read_text().splitlines()
                  if any(name in line for name in ("open", "stat", "access")) and "/dev/null" not in line]
        self.assertEqual(opened, [])


if not shutil.which("tmux"):
    sba.skip("no tmux here")
sba.main(__name__)
