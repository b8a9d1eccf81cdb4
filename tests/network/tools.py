# SPDX-License-Identifier: Apache-2.0
"""What is asked of the outside, tool by tool. A fresh folder is the tool's HOME and where it runs; its files are put there before. HOST is
one that nobody has, ADDRESS belongs to nobody (RFC 5737)."""
import os
import shutil
import subprocess

PATH = os.environ.get("SBA_TOOLS_PATH", "/usr/local/bin") + ":/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
HOST, ADDRESS = "files.example.org", "198.51.100.7"
URL = f"https://{HOST}/data.tar.gz"
PLAIN_URL = f"http://{HOST}/data.tar.gz"

APT = ["apt-get", "-q", "-o", "Dir=./", "-o", "APT::Update::Post-Invoke::=true", "-o", "Dir::Etc::trustedparts=/etc/apt/trusted.gpg.d", "-o", "APT::Sandbox::User=",
       "-o", "Debug::NoLocking=1", "-o", "Acquire::Retries=0", "-o", "Dir::State::status=status", "-o", "Dir::Bin::methods=/usr/lib/apt/methods"]
APT_FILES = {"etc/apt/sources.list": f"deb [trusted=yes] http://{HOST}/debian bookworm main\n", "var/lib/apt/lists/partial/x": "",
             "var/cache/apt/archives/partial/x": "", "var/lib/apt/status": ""}
APT_LISTS = {"var/lib/apt/lists/files.example.org_debian_dists_bookworm_main_binary-amd64_Packages":
             "Package: left-pad\nVersion: 1.0\nArchitecture: amd64\nMaintainer: a\nFilename: pool/l/left-pad_1.0_amd64.deb\nSize: 1000\n"
             "SHA256: " + "0" * 64 + "\nDescription: a\n",
             "var/lib/apt/lists/files.example.org_debian_dists_bookworm_Release":
             "Origin: a\nSuite: stable\nCodename: bookworm\nComponents: main\nArchitectures: amd64\nDate: Sat, 01 Jan 2022 00:00:00 UTC\n"}
PYTHON = "/usr/bin/python3"
NPMRC = f"registry=https://{HOST}/\nfetch-retries=0\nupdate-notifier=false\n"
NPM_FILES = {"package.json": '{"name": "a", "version": "1.0.0", "dependencies": {"left-pad": "1.3.0"}}\n',
             ".npmrc": NPMRC}
GO_FILES = {"go.mod": "module example.org/a\n\ngo 1.19\n\nrequire rsc.io/quote v1.5.2\n", "a.go": 'package main\n\nimport "rsc.io/quote"\n\nfunc main() { println(quote.Go()) }\n'}
CARGO_FILES = {"Cargo.toml": '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\nitoa = "1"\n', "src/main.rs": "fn main() {}\n",
               ".cargo/config.toml": f'[source.crates-io]\nreplace-with = "a"\n[source.a]\nregistry = "https://{HOST}/index"\n'}
POM = f"""<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version>
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13</version></dependency></dependencies>
<pluginRepositories><pluginRepository><id>central</id><url>https://{HOST}/maven</url></pluginRepository></pluginRepositories>
<repositories><repository><id>central</id><url>https://{HOST}/maven</url></repository></repositories></project>
"""
PYTHON_REQUESTS = f"import requests; requests.get('{URL}', timeout=5)"
NODE = f"fetch('{URL}').then(r => console.log(r.status))"
COMPOSER = f'{{"require": {{"a/b": "1.0"}}, "repositories": [{{"type": "composer", "url": "https://{HOST}"}}, {{"packagist.org": false}}]}}\n'
PERL = f"use LWP::UserAgent; my $r = LWP::UserAgent->new(timeout => 5)->get('{PLAIN_URL}'); die $r->status_line unless $r->is_success"

JAVA = f"""public class A {{
    public static void main(String[] a) throws Exception {{ new java.net.URL("{URL}").openStream(); }}
}}
"""

# name: (command, files)
TOOLS = {
    "curl": (["curl", "-sS", "-m", "20", URL], {}),
    "curl-quiet-fail": (["curl", "-fsSL", "-m", "20", PLAIN_URL], {}),
    "curl-progress": (["curl", "-fL", "-m", "20", "-o", "data", URL], {}),
    "curl-address": (["curl", "-sS", "-m", "20", f"http://{ADDRESS}/x"], {}),
    "busybox-ping": (["busybox", "ping", "-c", "1", HOST], {}),
    "wget": (["wget", "-t", "1", "-T", "5", URL], {}),
    "wget-quiet": (["wget", "-nv", "-t", "1", "-T", "5", PLAIN_URL], {}),
    "wget-address": (["wget", "-t", "1", "-T", "5", f"http://{ADDRESS}/x"], {}),
    "git-https": (["git", "clone", f"https://{HOST}/a.git"], {}),
    "git-ssh": (["git", "clone", f"git@{HOST}:a.git"], {}),
    "git-git": (["git", "clone", f"git://{HOST}/a.git"], {}),
    "git-address": (["git", "clone", f"https://{ADDRESS}/a.git"], {}),
    "git-submodule": (["git", "submodule", "add", f"https://{HOST}/a.git", "a"], {".git/HEAD": "ref: refs/heads/main\n", ".git/objects/x": "", ".git/refs/x": ""}),
    "pip": ([PYTHON, "-m", "pip", "install", "--break-system-packages", "--index-url", f"https://{HOST}/simple", "--retries", "1", "--timeout", "3", "leftpad"], {}),
    "pip-url": ([PYTHON, "-m", "pip", "install", "--break-system-packages", "--retries", "0", "--timeout", "3", f"https://{HOST}/a-1.0.tar.gz"], {}),
    "pip-git": ([PYTHON, "-m", "pip", "install", "--break-system-packages", f"git+https://{HOST}/a.git"], {}),
    "npm": (["npm", "install"], NPM_FILES),
    "npx": (["npx", "--yes", "cowsay@1.5.0", "hi"], {".npmrc": NPMRC}),
    "yarn": (["yarn", "install"], {**NPM_FILES, ".yarnrc": f'registry "https://{HOST}"\n'}),
    "pnpm": (["pnpm", "install"], NPM_FILES),
    "uv": (["uv", "pip", "install", "--system", "--break-system-packages", "--prefix", "here", "--default-index", f"https://{HOST}/simple", "leftpad"], {}),
    "apt-get-update": ([*APT, "update"], APT_FILES),
    "apt-get-install": ([*APT, "install", "-y", "left-pad"], {**APT_FILES, **APT_LISTS}),
    "apt-get-update-install": (["sh", "-c", " ".join(APT) + " update && " + " ".join(APT) + " install -y left-pad"], APT_FILES),
    "go": (["go", "build", "./..."], GO_FILES),
    "go-get": (["go", "get", "rsc.io/quote@v1.5.2"], {"go.mod": "module example.org/a\n\ngo 1.19\n"}),
    "cargo": (["cargo", "build"], CARGO_FILES),
    "gem": (["gem", "install", "--user-install", "--clear-sources", "--source", f"https://{HOST}", "left-pad"], {}),
    "bundle": (["bundle", "install"], {"Gemfile": f"source 'https://{HOST}'\ngem 'left-pad'\n"}),
    "composer": (["composer", "--no-interaction", "install"], {"composer.json": COMPOSER}),
    "cpanm": (["cpanm", "-q", "--mirror-only", "--mirror", f"http://{HOST}", "Acme::LeftPad"], {}),
    "perl-lwp": (["perl", "-e", PERL], {}),
    "mvn": (["mvn", "-B", "-q", "compile"], {"pom.xml": POM}),
    "rsync": (["rsync", f"rsync://{HOST}/a/b", "."], {}),
    "rsync-ssh": (["rsync", f"{HOST}:a", "."], {}),
    "ssh": (["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", f"user@{HOST}", "true"], {}),
    "ssh-address": (["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", f"user@{ADDRESS}", "true"], {}),
    "scp": (["scp", "-o", "BatchMode=yes", f"user@{HOST}:a", "."], {}),
    "nc": (["nc", "-w", "3", HOST, "80"], {}),
    "nc-address": (["nc", "-v", "-w", "3", ADDRESS, "80"], {}),
    "telnet": (["telnet", HOST, "80"], {}),
    "ping": (["ping", "-c", "1", "-W", "2", HOST], {}),
    "ping-address": (["ping", "-c", "1", "-W", "2", ADDRESS], {}),
    "dig": (["dig", "+time=1", "+tries=1", HOST], {}),
    "host": (["host", "-W", "1", HOST], {}),
    "nslookup": (["nslookup", "-timeout=1", HOST], {}),
    "svn": (["svn", "--non-interactive", "checkout", f"https://{HOST}/a"], {}),
    "hg": (["hg", "clone", f"https://{HOST}/a"], {}),
    "aria2c": (["aria2c", "-t", "3", "-m", "1", URL], {}),
    "lftp": (["lftp", "-c", "set net:max-retries 1; set net:timeout 3; set dns:fatal-timeout 3; get " + URL], {}),
    "openssl": (["openssl", "s_client", "-connect", f"{HOST}:443"], {}),
    "socat": (["socat", "-", f"TCP:{HOST}:80"], {}),
    "http": (["http", "--ignore-stdin", "--timeout", "5", URL], {}),
    "psql": (["psql", "-h", HOST, "-U", "a", "-c", "select 1"], {}),
    "redis-cli": (["redis-cli", "-h", HOST, "ping"], {}),
    "gpg": (["gpg", "--batch", "--keyserver", f"hkps://{HOST}", "--recv-keys", "0123456789ABCDEF0123456789ABCDEF01234567"], {}),
    "debootstrap": (["debootstrap", "--print-debs", "bookworm", "root", f"http://{HOST}/debian"], {}),
    "rscript": (["Rscript", "-e", "options(warn = 2); install.packages('R6', lib = '.', repos = 'https://cran.example.org')"], {}),
    "php": (["php", "-r", f"if (file_get_contents('{PLAIN_URL}') === false) exit(1);"], {}),
    "ruby": (["ruby", "-ropen-uri", "-e", f"URI.open('{URL}').read"], {}),
    "python-urllib": ([PYTHON, "-c", f"import urllib.request; urllib.request.urlopen('{URL}', timeout=5)"], {}),
    "python-requests": ([PYTHON, "-c", PYTHON_REQUESTS], {}),
    "python-socket": ([PYTHON, "-c", f"import socket; socket.create_connection(('{ADDRESS}', 80), 5)"], {}),
    "java": (["java", "A.java"], {"A.java": JAVA}),
    "node-fetch": (["node", "-e", NODE], {}),
    "node-https": (["node", "-e", f"require('https').get('{URL}')"], {}),
}

def lay_out(folder, files, user):
    """Puts files below a folder that a user owns."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user)


def environment(home):
    return {"PATH": PATH, "HOME": home, "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOPROXY": f"https://{HOST}", "GOSUMDB": "off",
            "GOPATH": home + "/go", "GOCACHE": home + "/cache"}


# Whether modules are there that a tool wants beside its program.
MODULES = {"pip": [PYTHON, "-m", "pip", "--version"], "pip-url": [PYTHON, "-m", "pip", "--version"],
           "pip-git": [PYTHON, "-m", "pip", "--version"], "perl-lwp": ["perl", "-MLWP::UserAgent", "-e1"],
           "python-requests": [PYTHON, "-c", "import requests"]}


def is_installed(name):
    if shutil.which(TOOLS[name][0][0], path=PATH) is None:
        return False
    return name not in MODULES or subprocess.run(MODULES[name], capture_output=True, check=False).returncode == 0


def is_debians(name):
    """Whether the tool is installed as Debian has it, so that what it says is known."""
    path = shutil.which(TOOLS[name][0][0], path=PATH)
    return is_installed(name) and subprocess.run(["dpkg-query", "-S", os.path.realpath(path)], capture_output=True, check=False).returncode == 0
