# SPDX-License-Identifier: Apache-2.0
"""Podman for the tests: whether containers can run here, with what, and the image that they run.

Images live in a store of the tests' own in the user's cache directory: a base that debootstrap makes once and that
stands for the registry's, and the image of the Containerfile, of which only the layers that changed are built again.
"""
import fcntl
import functools
import os
import pathlib
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))
import packages  # noqa: E402
import skips  # noqa: E402
from waiting import wait_for  # noqa: E402, F401  (for the tests)

BINARY = pathlib.Path(os.environ.get("SBA_BINARY", TOP / "build/release/cynode-sba"))
CACHE = packages.CACHE / "containers"
IN_NAMESPACE = "SBA_CONTAINER_NAMESPACE"
UNIFIED = "/sys/fs/cgroup/unified"

# What a runtime may refuse, the mildest first: on some machines root's limits cannot be raised, or no cgroup be made.
LIMITS = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
OPTIONS = [[], LIMITS, ["--cgroups=disabled", *LIMITS]]


def podman(*arguments, check=True, **options):
    """Runs podman on the tests' store; returns the finished process with its output as text."""
    command = ["podman", "--root", str(CACHE / "storage"), "--runroot", str(CACHE / "run"), *arguments]
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(command, **{"capture_output": True, "text": True, "timeout": 1200, **options})
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def skip(reason):
    skips.skip(f"no container can run here: {reason}")


def enter_namespace():
    """Begins the program again in a mount namespace without cgroup 2: crun refuses a machine that has both kinds."""
    if os.path.ismount(UNIFIED) and IN_NAMESPACE not in os.environ:
        os.environ[IN_NAMESPACE] = "1"
        command = ["unshare", "--mount", "sh", "-c", f'umount {UNIFIED}; exec "$@"', "sh", sys.executable, "-B",
                   *sys.argv]
        os.execvp(command[0], command)


def require(with_image=True):
    """Ends the program as skipped where no container can run. Returns the base image, the options of every run, and the
    runner's image where it is wanted."""
    if os.geteuid() != 0:
        skip("the base image is made by debootstrap, which wants root")
    for tool in ("podman", "debootstrap", "unshare"):
        if not shutil.which(tool):
            skip(f"there is no {tool}")
    enter_namespace()
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return base(), run_options(), image() if with_image else None


@functools.cache
def base():
    """The name of the base image, which is made the first time."""
    codename = subprocess.run(["sh", "-c", '. /etc/os-release; echo "$VERSION_CODENAME"'], stdout=subprocess.PIPE,
                              text=True).stdout.strip()
    name = f"localhost/sba-base:{codename}"
    if podman("image", "exists", name, check=False).returncode == 0:
        return name
    root = CACHE / "base.new"
    shutil.rmtree(root, ignore_errors=True)
    print("making the base image with debootstrap, the first time only", flush=True)
    done = subprocess.run(["debootstrap", "--variant=minbase", codename, str(root), *mirror(codename)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        skip("debootstrap could not make a base image: " + done.stdout[-500:])
    shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)
    with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as tar:
        podman("import", "--quiet", "-", name, stdin=tar.stdout)
    shutil.rmtree(root)
    return name


def mirror(codename):
    """The mirror of this release that the machine itself uses; debootstrap's own where apt does not say."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                              f"Codename: {codename}"],
                             stdout=subprocess.PIPE, text=True).stdout.split()
    return targets[:1]


@functools.cache
def run_options():
    """Options that every run needs on this machine, the fewest that do."""
    for options in OPTIONS:
        done = podman("run", "--rm", "--network=none", *options, base(), "true", check=False)
        if done.returncode == 0:
            return options
    return skip(done.stderr.strip())


def vendor_volume():
    """Lends the libraries of the release build to the build stage, so that it need not make them: minutes."""
    def prefix(environment):
        return subprocess.run([TOP / "vendor/build", "--prefix"], env=environment, stdout=subprocess.PIPE, text=True,
                              check=True).stdout.strip()
    ours = prefix(os.environ)
    plain = {name: value for name, value in os.environ.items() if name not in ("SBA_VENDOR_DIR", "XDG_CACHE_HOME")}
    theirs = prefix({**plain, "HOME": "/root"})
    return f"--volume={ours}:{theirs}:ro"


@functools.cache
def image():
    """The name of the runner's image, as the Containerfile makes it from the base."""
    name = "localhost/cynode-sba:test"
    print("building the image", flush=True)
    podman("build", "--isolation=chroot", "--layers", "--build-arg", f"BUILD_IMAGE={base()}", "--build-arg",
           f"BASE_IMAGE={base()}", "--build-arg", "VENDOR_ALLOW_OLDER=1", vendor_volume(), "--tag", name, str(TOP))
    podman("image", "prune", "--force", "--filter", "until=240h", check=False)  # layers that no build has used for days
    return name
