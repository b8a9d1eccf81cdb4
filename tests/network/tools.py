# SPDX-License-Identifier: Apache-2.0
"""What is asked of the outside, tool by tool. A fresh folder is the tool's HOME and where it runs; its files are put there before. HOST is
one that nobody has, ADDRESS belongs to nobody (RFC 5737)."""
import os
import shlex
import shutil
import subprocess

PATH = os.environ.get("SBA_TOOLS_PATH", "/usr/local/bin") + ":/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
HOST, ADDRESS = "files.example.org", "198.51.100.7"
URL = f"https://{HOST}/data.tar.gz"
PLAIN_URL = f"http://{HOST}/data.tar.gz"
PYTHON = "/usr/bin/python3"
PIP = f"{PYTHON} -m pip install --break-system-packages"
SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=5"
APT = "apt-get -q -o Dir=./ -o APT::Update::Post-Invoke::=true -o Dir::Etc::trustedparts=/etc/apt/trusted.gpg.d " \
      "-o APT::Sandbox::User= -o Debug::NoLocking=1 -o Acquire::Retries=0 -o Dir::State::status=status " \
      "-o Dir::Bin::methods=/usr/lib/apt/methods"
LWP = f"use LWP::UserAgent; my $r = LWP::UserAgent->new(timeout => 5)->get('{PLAIN_URL}'); die $r->status_line unless $r->is_success"
LFTP = f"set net:max-retries 1; set net:timeout 3; set dns:fatal-timeout 3; get {URL}"
R = "options(warn = 2); install.packages('R6', lib = '.', repos = 'https://cran.example.org')"

COMMANDS = {
    "curl": f"curl -sS -m 20 {URL}",
    "curl-quiet-fail": f"curl -fsSL -m 20 {PLAIN_URL}",
    "curl-progress": f"curl -fL -m 20 -o data {URL}",
    "curl-address": f"curl -sS -m 20 http://{ADDRESS}/x",
    "busybox-ping": f"busybox ping -c 1 {HOST}",
    "wget": f"wget -t 1 -T 5 {URL}",
    "wget-quiet": f"wget -nv -t 1 -T 5 {PLAIN_URL}",
    "wget-address": f"wget -t 1 -T 5 http://{ADDRESS}/x",
    "git-https": f"git clone https://{HOST}/a.git",
    "git-ssh": f"git clone git@{HOST}:a.git",
    "git-git": f"git clone git://{HOST}/a.git",
    "git-address": f"git clone https://{ADDRESS}/a.git",
    "git-submodule": f"git submodule add https://{HOST}/a.git a",
    "pip": f"{PIP} --index-url https://{HOST}/simple --retries 1 --timeout 3 leftpad",
    "pip-url": f"{PIP} --retries 0 --timeout 3 https://{HOST}/a-1.0.tar.gz",
    "pip-git": f"{PIP} git+https://{HOST}/a.git",
    "npm": "npm install",
    "npx": "npx --yes cowsay@1.5.0 hi",
    "yarn": "yarn install",
    "pnpm": "pnpm install",
    "uv": f"uv pip install --system --break-system-packages --prefix here --default-index https://{HOST}/simple leftpad",
    "apt-get-update": f"{APT} update",
    "apt-get-install": f"{APT} install -y left-pad",
    "apt-get-update-install": f"sh -c '{APT} update && {APT} install -y left-pad'",
    "go": "go build ./...",
    "go-get": "go get rsc.io/quote@v1.5.2",
    "cargo": "cargo build",
    "gem": f"gem install --user-install --clear-sources --source https://{HOST} left-pad",
    "bundle": "bundle install",
    "composer": "composer --no-interaction install",
    "cpanm": f"cpanm -q --mirror-only --mirror http://{HOST} Acme::LeftPad",
    "perl-lwp": f'perl -e "{LWP}"',
    "mvn": "mvn -B -q compile",
    "rsync": f"rsync rsync://{HOST}/a/b .",
    "rsync-ssh": f"rsync {HOST}:a .",
    "ssh": f"ssh {SSH_OPTIONS} user@{HOST} true",
    "ssh-address": f"ssh {SSH_OPTIONS} user@{ADDRESS} true",
    "scp": f"scp -o BatchMode=yes user@{HOST}:a .",
    "nc": f"nc -w 3 {HOST} 80",
    "nc-address": f"nc -v -w 3 {ADDRESS} 80",
    "telnet": f"telnet {HOST} 80",
    "ping": f"ping -c 1 -W 2 {HOST}",
    "ping-address": f"ping -c 1 -W 2 {ADDRESS}",
    "dig": f"dig +time=1 +tries=1 {HOST}",
    "host": f"host -W 1 {HOST}",
    "nslookup": f"nslookup -timeout=1 {HOST}",
    "svn": f"svn --non-interactive checkout https://{HOST}/a",
    "hg": f"hg clone https://{HOST}/a",
    "aria2c": f"aria2c -t 3 -m 1 {URL}",
    "lftp": f'lftp -c "{LFTP}"',
    "openssl": f"openssl s_client -connect {HOST}:443",
    "socat": f"socat - TCP:{HOST}:80",
    "http": f"http --ignore-stdin --timeout 5 {URL}",
    "psql": f"psql -h {HOST} -U a -c 'select 1'",
    "redis-cli": f"redis-cli -h {HOST} ping",
    "gpg": f"gpg --batch --keyserver hkps://{HOST} --recv-keys 0123456789ABCDEF0123456789ABCDEF01234567",
    "debootstrap": f"debootstrap --print-debs bookworm root http://{HOST}/debian",
    "rscript": f'Rscript -e "{R}"',
    "php": f"""php -r "if (file_get_contents('{PLAIN_URL}') === false) exit(1);" """,
    "ruby": f"""ruby -ropen-uri -e "URI.open('{URL}').read" """,
    "python-urllib": f"""{PYTHON} -c "import urllib.request; urllib.request.urlopen('{URL}', timeout=5)" """,
    "python-requests": f"""{PYTHON} -c "import requests; requests.get('{URL}', timeout=5)" """,
    "python-socket": f"""{PYTHON} -c "import socket; socket.create_connection(('{ADDRESS}', 80), 5)" """,
    "java": "java A.java",
    "node-fetch": f"""node -e "fetch('{URL}').then(r => console.log(r.status))" """,
    "node-https": f"""node -e "require('https').get('{URL}')" """,
}

NPMRC = {".npmrc": f"registry=https://{HOST}/\nfetch-retries=0\nupdate-notifier=false\n"}
NPM = {"package.json": '{"name": "a", "version": "1.0.0", "dependencies": {"left-pad": "1.3.0"}}\n', **NPMRC}
APT_EMPTY = {"etc/apt/sources.list": f"deb [trusted=yes] http://{HOST}/debian bookworm main\n", "var/lib/apt/lists/partial/x": "",
             "var/cache/apt/archives/partial/x": "", "var/lib/apt/status": ""}
APT_LIST = f"var/lib/apt/lists/{HOST}_debian_dists_bookworm_"
MAVEN = f"<id>central</id><url>https://{HOST}/maven</url>"

FILES = {
    "git-submodule": {".git/HEAD": "ref: refs/heads/main\n", ".git/objects/x": "", ".git/refs/x": ""},
    "npm": NPM, "npx": NPMRC, "pnpm": NPM, "yarn": {**NPM, ".yarnrc": f'registry "https://{HOST}"\n'},
    "apt-get-update": APT_EMPTY, "apt-get-update-install": APT_EMPTY,
    "apt-get-install": {
        **APT_EMPTY,
        APT_LIST + "main_binary-amd64_Packages":
        "Package: left-pad\nVersion: 1.0\nArchitecture: amd64\nMaintainer: a\nFilename: pool/l/left-pad_1.0_amd64.deb\nSize: 1000\n"
        f"SHA256: {'0' * 64}\nDescription: a\n",
        APT_LIST + "Release": "Origin: a\nSuite: stable\nCodename: bookworm\nComponents: main\nArchitectures: amd64\n"
                              "Date: Sat, 01 Jan 2022 00:00:00 UTC\n"},
    "go": {"go.mod": "module example.org/a\n\ngo 1.19\n\nrequire rsc.io/quote v1.5.2\n",
           "a.go": 'package main\n\nimport "rsc.io/quote"\n\nfunc main() { println(quote.Go()) }\n'},
    "go-get": {"go.mod": "module example.org/a\n\ngo 1.19\n"},
    "cargo": {"Cargo.toml": '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\nitoa = "1"\n',
              "src/main.rs": "fn main() {}\n",
              ".cargo/config.toml": f'[source.crates-io]\nreplace-with = "a"\n[source.a]\nregistry = "https://{HOST}/index"\n'},
    "bundle": {"Gemfile": f"source 'https://{HOST}'\ngem 'left-pad'\n"},
    "composer": {"composer.json": f'{{"require": {{"a/b": "1.0"}}, "repositories": [{{"type": "composer", "url": "https://{HOST}"}}]}}\n'},
    "mvn": {"pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version>\n"
                       "<dependencies><dependency><groupId>a</groupId><artifactId>b</artifactId><version>1</version></dependency>"
                       f"</dependencies>\n<pluginRepositories><pluginRepository>{MAVEN}</pluginRepository></pluginRepositories>\n"
                       f"<repositories><repository>{MAVEN}</repository></repositories></project>\n"},
    "java": {"A.java": "public class A {\n    public static void main(String[] a) throws Exception {\n"
                       f'        new java.net.URL("{URL}").openStream();\n    }}\n}}\n'},
}

# Whether modules are there that a tool wants beside its program.
MODULES = {"pip": [PYTHON, "-m", "pip", "--version"], "pip-url": [PYTHON, "-m", "pip", "--version"],
           "pip-git": [PYTHON, "-m", "pip", "--version"], "perl-lwp": ["perl", "-MLWP::UserAgent", "-e1"],
           "python-requests": [PYTHON, "-c", "import requests"]}


def command(name):
    return shlex.split(COMMANDS[name])


def lay_out(name, folder, user):
    """Puts a tool's files below a folder that a user is to own."""
    for path, text in FILES.get(name, {}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user)


def environment(home):
    return {"PATH": PATH, "HOME": home, "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local",
            "GOPROXY": f"https://{HOST}", "GOSUMDB": "off", "GOPATH": home + "/go", "GOCACHE": home + "/cache"}


def program(name):
    return shutil.which(command(name)[0], path=PATH)


def is_installed(name):
    return program(name) is not None and (
        name not in MODULES or subprocess.run(MODULES[name], capture_output=True, check=False).returncode == 0)


def is_debians(name):
    """Whether the tool is installed as Debian has it, so that what it says is known."""
    return is_installed(name) and subprocess.run(["dpkg-query", "-S", os.path.realpath(program(name))], capture_output=True,
                                                 check=False).returncode == 0
