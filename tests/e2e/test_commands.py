# SPDX-License-Identifier: Apache-2.0
"""run_command through whole jobs: arguments in, result out."""
import os

import sba

FIELDS = ["exit_code", "stdout", "stderr", "stdout_truncated", "stderr_truncated", "duration_ms", "cpu_time_ms", "max_rss_bytes"]


class Commands(sba.SandboxCase):
    def run_step(self, **arguments):
        done = self.run_job(self.job(self.step("run_command", **arguments)))
        return done, done.result["steps"][0]

    def test_the_ways_to_name_a_command(self):
        for arguments in ({"command": "printf", "args": ["%s-%s", "a b", "$c"]}, {"argv": ["printf", "%s-%s", "a b", "$c"]},
                          {"shell": "printf '%s-%s' 'a b' '$c'"}):
            done, entry = self.run_step(**arguments)
            self.assertEqual((done.exit, entry["result"]["stdout"], entry["output"]), (0, "a b-$c", "a b-$c"), done.result)
            self.assertEqual(list(entry["result"]), FIELDS)

    def test_a_signal_is_no_exit_code(self):
        done, entry = self.run_step(shell="kill -SEGV $$")
        self.assertEqual((done.exit, entry["result"]["signal"]), (1, "SIGSEGV"))
        self.assertNotIn("exit_code", entry)
        self.assertNotIn("exit_code", entry["result"])

    def test_working_dir_and_its_alias(self):
        self.put("a/b/file")
        for name in ("working_dir", "cwd"):
            done, entry = self.run_step(command="ls", **{name: "a/b"})
            self.assertEqual(entry["result"]["stdout"], "file\n", done.result)
        os.symlink("/usr", self.workspace / "out")
        self.assertEqual(self.run_step(argv=["/bin/pwd", "-P"], working_dir="out/bin")[1]["result"]["stdout"], f"{os.path.realpath('/usr/bin')}\n")
        (self.root / "closed").mkdir(0o000)
        entry = self.run_step(command="ls", working_dir=str(self.root / "closed"))[1]
        self.assertEqual(entry["error_code"], "permission_denied")
        self.assertIn(f"the working directory {os.path.realpath(self.root)}/closed cannot be entered: Permission denied", entry["error"])

    def test_a_command_is_found_by_its_own_path(self):
        self.put("tools/greet", "#!/bin/sh\necho hello\n", 0o755)
        job = self.job(self.step("run_command", command="greet", env={"PATH": f"{self.workspace}/tools:/bin"}))
        self.assertEqual(self.run_job(job).result["steps"][0]["result"]["stdout"], "hello\n")

    def test_stdin(self):
        self.assertEqual(self.run_step(command="cat", stdin="a\0b\u00e9")[1]["result"]["stdout"], "a\0b\u00e9")
        self.assertEqual(self.run_step(command="cat")[1]["result"]["stdout"], "")


if __name__ == "__main__":
    sba.main()
