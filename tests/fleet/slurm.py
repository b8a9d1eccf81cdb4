# SPDX-License-Identifier: Apache-2.0
"""A Slurm of one machine, on loopback: Debian's munged, slurmctld and slurmd, in directories and on ports of their own,
all as one user. Nothing of the machine's own configuration is read or written."""
import os
import pwd
import secrets
import shutil
import subprocess
import unittest

import sba
from servers import real
from waiting import wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
PATIENCE = 30  # seconds until a daemon that was told to end is killed

# cred_expire: how long a job that is requeued waits before it starts again. linuxproc: not every machine gives cgroups.
SETTINGS = """
ClusterName=tests
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket,cred_expire=5
SlurmctldPort={controller}
SlurmdPort={node}
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=3600
KillWait=30
MpiDefault=none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
RequeueExit=75
NodeName=localhost NodeAddr=127.0.0.1 CPUs={processors} RealMemory=100000
PartitionName=all Nodes=localhost Default=YES MaxTime=INFINITE State=UP
"""


def user():
    """Whose processes they are. Slurm wants one that has a name."""
    if os.geteuid() == 0:
        return pwd.getpwnam("slurm")
    try:
        return pwd.getpwuid(os.geteuid())
    except KeyError as error:
        raise unittest.SkipTest("Slurm wants a user that has a name") from error


class Cluster:
    """Until close(). place: an empty directory, which the user is given."""

    def __init__(self, place, processors):
        missing = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
        if missing:
            raise unittest.SkipTest(f"there is no {missing[0]} (Debian's munge, slurmctld, slurmd, slurm-client)")
        self.place, self.user, self.processes = place, user(), []
        self.environment = {"PATH": PATH, "HOME": str(place), "SLURM_CONF": str(place / "slurm.conf")}
        for name in ("state", "spool"):
            (place / name).mkdir(mode=0o700)
        settings = SETTINGS.format(user=self.user.pw_name, place=place, controller=real.free_port(),
                                   node=real.free_port(), processors=processors)
        (place / "slurm.conf").write_text(settings)
        (place / "munge.key").write_bytes(secrets.token_bytes(64))
        (place / "munge.key").chmod(0o600)
        for path in (place, *place.iterdir()):
            os.chown(path, self.user.pw_uid, self.user.pw_gid)
        try:
            files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
            self.start("munged", "--foreground", "--force", "--num-threads=2",
                       *(f"--{option}={place}/munge.{name}" for option, name in files.items()))
            wait_for((place / "munge.socket").exists, "munged to listen")
            self.start("slurmctld", "-D")
            self.start("slurmd", "-D", "-N", "localhost")
            wait_for(lambda: "idle" in self.run("sinfo", "--noheader", "--format=%T", check=False), "the node to idle")
        except BaseException:
            self.close()
            raise

    def as_user(self):
        if os.geteuid() != 0:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}

    def start(self, program, *arguments):
        with open(self.place / f"{program}.out", "wb") as out:
            self.processes.append(subprocess.Popen(
                [shutil.which(program, path=PATH), *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=self.environment, cwd=self.place, preexec_fn=sba.reset_signals, **self.as_user()))

    def run(self, program, *arguments, check=True, env=None, cwd=None):
        """What one of Slurm's programs prints."""
        assert all(process.poll() is None for process in self.processes), self.words()
        done = subprocess.run([program, *arguments], env={**self.environment, **(env or {})}, cwd=cwd or self.place,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                              **self.as_user())
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def words(self):
        """The ends of the daemons' logs."""
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self.place.glob("*.log")))

    def jobs(self, identity):
        """The tasks of an array that have run or run: each by its index, with what scontrol says."""
        records = [dict(word.split("=", 1) for word in line.split() if "=" in word)
                   for line in self.run("scontrol", "--oneliner", "show", "job", identity).splitlines()]
        return {int(record["ArrayTaskId"]): record for record in records if record["ArrayTaskId"].isdigit()}

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
