# SPDX-License-Identifier: Apache-2.0
"""container/install-tools on bases that are not here: their package managers only note what they were asked."""
import shutil

import node
import podman

TOOLS = {"bash", "ca-certificates", "diffutils", "findutils", "git", "gzip", "jq", "python3", "tar", "unzip", "zip"}
NOTE = '#!/bin/sh\necho "${0##*/}: $*"\n'
SEE = """echo "passwd: $(grep -c :1000: /etc/passwd) $(getent passwd 1000)"
echo "group: $(getent group 1000)"; stat -c "%u %n" /workspace /job"""


class InstallTest(node.NodeCase):
    def install(self, manager, *packages, before="true"):
        """Runs the script in the base image, which has no other package manager then. Returns podman's process."""
        managers = self.root / "managers"
        shutil.rmtree(managers, ignore_errors=True)
        managers.mkdir()
        for name in filter(None, (manager, "git")):
            (managers / name).write_text(NOTE)
            (managers / name).chmod(0o755)
        script = f'{before}; rm -f /usr/bin/apt-get; sh /install-tools "$@" && {SEE}'
        return podman.podman("run", "--rm", "--network=none", *self.options, f"--volume={managers}:/usr/local/bin:ro",
                             f"--volume={podman.TOP}/container/install-tools:/install-tools:ro", self.base, "sh", "-c",
                             script, "sh", *packages, check=False)

    def asked(self, manager, *packages):
        """What the manager was asked to install, options and all."""
        done = self.install(manager, *packages)
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in done.stdout.splitlines():
            if line.startswith(f"{manager}: ") and ("install" in line or " add " in line):
                return set(line.split()[1:])
        return self.fail(done.stdout)

    def test_each_manager_gets_the_names_of_its_distribution(self):
        self.assertEqual(self.asked("apk", "gcc", "make"),
                         {"add", "--no-cache", "coreutils", "procps", "gcc", "make"} | TOOLS)
        for manager in ("dnf", "microdnf", "yum"):
            options = {"install", "-y", "--setopt=install_weak_deps=0", "--setopt=tsflags=nodocs"}
            self.assertEqual(self.asked(manager, "gcc"), options | {"procps-ng", "gcc"} | TOOLS)

    def test_the_user_takes_the_place_of_another(self):
        done = self.install("apk", before="useradd --uid 1000 ubuntu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("passwd: 1 sba:x:1000:1000:sandbox agent:/tmp:/bin/sh\ngroup: sba:x:1000:\n"
                      "1000 /workspace\n1000 /job\n", done.stdout)

    def test_no_manager_is_a_clear_error(self):
        done = self.install(None)
        self.assertEqual(done.returncode, 1)
        self.assertIn("none of apk, apt-get, dnf, microdnf and yum is in this image", done.stderr)


node.main(with_image=False)
