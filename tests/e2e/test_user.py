# SPDX-License-Identifier: Apache-2.0
"""Root is refused; --user and SBA_USER give it up for good. Without root only what an ordinary user can see is tested."""
import json
import os
import subprocess
import unittest

import sba

WHO = "id -u; id -g; id -G; grep -E '^(Cap(Prm|Eff|Bnd|Amb|Inh)|NoNewPrivs)' /proc/self/status"


@unittest.skipIf(os.geteuid() != 0, "wants root")
class Root(sba.SandboxCase):
    def run_as_root(self, *more, groups=(4, 27), job=None, **options):
        job = job or self.job(self.step("run_command", shell=WHO), self.step("write_file", path="new", content="x"))
        return self.run_job(job, *more, **{**sba.AS_ROOT, "extra_groups": list(groups), **options})

    def assert_refused(self, done, code):
        self.assertEqual((done.exit, done.result["status"], done.result["failure_code"]), (2, "failure", code), done.result)
        self.assertEqual((done.result["job_id"], done.result["steps"]), ("job-1", []), done.result)
        self.assertTrue(done.result["failure_message"])
        self.assertEqual(os.listdir(self.workspace), [])

    def assert_became(self, done, uid, gid):
        self.assertEqual(done.exit, 0, done.result or done.stderr)
        said = done.result["steps"][0]["result"]["stdout"].split("\n")
        self.assertEqual(said[:3], [str(uid), str(gid), str(gid)])
        rights = dict(line.split(":\t") for line in said[3:] if line)
        self.assertEqual((rights["CapEff"], rights["CapPrm"], rights["NoNewPrivs"]), ("0" * 16, "0" * 16, "1"))
        owner = (self.workspace / "new").stat()
        self.assertEqual((owner.st_uid, owner.st_gid), (uid, gid))
        owner = self.result_path.stat()
        self.assertEqual((owner.st_uid, owner.st_gid), (uid, gid))

    def test_is_refused(self):
        self.assert_refused(self.run_as_root(env={"CYNODE_JOB_ID": "job-1"}), "runs_as_root")

    @unittest.skipUnless(sba.may("unshare", "--user", "--map-root-user", "true"), "no user namespace can be made here")
    def test_is_refused_in_a_user_namespace(self):
        done = self.run_job(self.job(self.step("write_file", path="new", content="x")), wrapper=["unshare", "--user", "--map-root-user"],
                            env={"CYNODE_JOB_ID": "job-1"})
        self.assert_refused(done, "runs_as_root")

    def test_is_refused_where_only_the_real_user_is_root(self):
        """As a program with the set-user-id bit is."""
        wrapper = ["/usr/bin/python3", "-c", f"import os, sys; os.setresgid({sba.UID}, {sba.UID}, {sba.UID}); os.setresuid(0, {sba.UID}, {sba.UID}); "
                   "os.execv(sys.argv[1], sys.argv[1:])"]
        done = self.run_as_root(wrapper=wrapper, groups=(), env={"CYNODE_JOB_ID": "job-1"})
        self.assertEqual(done.result["failure_code"], "runs_as_root")
        if not sba.IS_DEV:  # where LeakSanitizer may not look at such a process and says so by the exit status
            self.assert_refused(done, "runs_as_root")

    def test_is_refused_where_it_could_be_had_back(self):
        """With these securebits a process keeps root's rights as it becomes somebody else."""
        done = self.run_as_root("--user", str(sba.UID), wrapper=["setpriv", "--securebits=+no_setuid_fixup", "--"],
                                env={"CYNODE_JOB_ID": "job-1"})
        self.assert_refused(done, "runs_as_root")
        self.assertIn("could be undone", done.result["failure_message"])

    def test_becomes_whom_it_is_told_to(self):
        uid = sba.UID
        for user, gid in ((f"{uid}", uid), (f"{uid}:{uid}", uid), (f"{uid}:users", 100), (f"{uid}:7", 7)):
            with self.subTest(user=user):
                (self.workspace / "new").unlink(missing_ok=True)
                self.result_path.unlink(missing_ok=True)
                self.assert_became(self.run_as_root("--user", user), uid, gid)

    def test_becomes_a_user_of_passwd_with_its_group(self):
        for directory in (self.job_directory, self.workspace):
            os.chown(directory, 65534, 65534)
        self.assert_became(self.run_as_root("--user", "nobody"), 65534, 65534)

    def test_takes_the_user_from_the_environment_and_the_option_first(self):
        self.assert_became(self.run_as_root(env={"SBA_USER": f"{sba.UID}:7"}), sba.UID, 7)
        self.result_path.unlink()
        (self.workspace / "new").unlink()
        self.assert_became(self.run_as_root("--user", f"{sba.UID}:8", env={"SBA_USER": "no-such-user"}), sba.UID, 8)

    def test_never_comes_back(self):
        script = "import os\nfor call in (os.setuid, os.setgid):\n  try: call(0); print('root')\n  except PermissionError: print('refused')"
        done = self.run_as_root("--user", str(sba.UID), job=self.job(self.step("run_command", argv=["/usr/bin/python3", "-c", script])))
        self.assertEqual(done.result["steps"][0]["result"]["stdout"], "refused\nrefused\n")

    def test_becomes_the_user_before_it_reads_the_job(self):
        path = self.job_directory / "job.json"
        process = self.start(self.job(), "--user", str(sba.UID), **sba.AS_ROOT)
        process.communicate()
        self.assertEqual(process.returncode, 0)
        path.chmod(0o600)
        os.chown(path, 0, 0)
        done = subprocess.run([sba.BINARY, *self.arguments(), "--user", str(sba.UID)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(json.loads(self.result_path.read_bytes())["status"], "failure")

    def test_a_user_that_is_none_is_refused(self):
        for user in ("0", "0:5", "root", "no-such-user", f"{sba.UID}:no-such-group", ":", f"{sba.UID}:", ":5", "-1", "4294967295", "1x",
                     "18446744073709551616", "1 ", "1:2:3"):
            with self.subTest(user=user):
                self.result_path.unlink(missing_ok=True)
                done = self.run_as_root("--user", user, env={"CYNODE_JOB_ID": "job-1"})
                self.assertEqual((done.exit, done.result["status"], done.result["steps"]), (2, "failure", []), done.result)
                self.assertIn("--user", done.result["failure_message"])
                self.assertEqual(os.listdir(self.workspace), [])


    def test_may_ask_and_check(self):
        job = self.put("job.json", json.dumps(self.job()))
        for arguments in (["--version"], ["--help"], ["--schema"], ["--validate", str(job)], ["--lua", "-e", "return"]):
            self.assertEqual(sba.run(*arguments, **sba.AS_ROOT).returncode, 0)


class Ordinary(sba.SandboxCase):
    def test_user_may_name_itself(self):
        uid, gid = (sba.UID, sba.GID) if sba.UID else (os.getuid(), os.getgid())
        done = self.run_job(self.job(self.step("run_command", shell="id -u")), "--user", f"{uid}:{gid}")
        self.assertEqual((done.exit, done.result["steps"][0]["result"]["stdout"]), (0, f"{uid}\n"))

    def test_user_cannot_become_another(self):
        done = self.run_job(self.job(self.step("run_command", shell="id -u")), "--user", "12345")
        self.assertEqual((done.exit, done.result["status"], done.result["steps"]), (2, "failure", []), done.result)


if __name__ == "__main__":
    sba.main()
