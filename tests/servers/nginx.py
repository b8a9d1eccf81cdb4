# SPDX-License-Identifier: Apache-2.0
"""A real nginx before other servers, and certificates of a private authority for it.

    nginx = Nginx({"listen": "tls", "locations": {"/": "proxy_pass http://127.0.0.1:1234;"}})
    nginx.urls[0]          https://localhost:PORT
"""
import pathlib
import shutil
import subprocess
import tempfile

from . import real

DIRECTORIES = "\n".join(f"    {kind}_temp_path temp/{kind};"
                        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))


def is_there():
    return real.is_there("nginx")


class Authority:
    """A private authority: .file is its certificate, issue() makes one for a host."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="sba-authority-"))
        self.directory.chmod(0o755)
        self.file, self.key, self.count = self.directory / "authority.pem", self.directory / "authority.key", 0
        self.openssl("req", "-x509", *self.request("/CN=authority of tests", self.key), "-days", "2", "-out", self.file)
        self.file.chmod(0o644)

    @staticmethod
    def request(subject, key):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject, "-keyout", key]

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    def issue(self, name="DNS:localhost", days=2):
        """A certificate for a name and its key; with days below 0 it is expired."""
        self.count += 1
        base = self.directory / str(self.count)
        asked, certificate, key = base.with_suffix(".csr"), base.with_suffix(".pem"), base.with_suffix(".key")
        self.openssl("req", *self.request("/CN=test", key), "-addext", f"subjectAltName={name}", "-out", asked)
        self.openssl("x509", "-req", "-in", asked, "-CA", self.file, "-CAkey", self.key, "-days", days,
                     "-copy_extensions", "copy", "-out", certificate)
        return certificate, key

    def close(self):
        shutil.rmtree(self.directory, ignore_errors=True)


class Nginx(real.RealServer):
    """Servers are tables: listen: "http", "tls" (and certificate:) or "unix"; locations: path -> directives."""

    def __init__(self, *servers):
        super().__init__()
        self.ports, self.urls, blocks = [], [], []
        for number, server in enumerate(servers):
            blocks.append(self.block(number, server))
        (self.directory / "temp").mkdir()
        self.write("nginx.conf", f"""daemon off;
pid {self.directory}/pid;
error_log {self.directory}/error info;
events {{ worker_connections 64; }}
http {{
    access_log {self.directory}/log;
{DIRECTORIES}
    proxy_buffering off;
    proxy_http_version 1.1;
    client_max_body_size 0;
{"".join(blocks)}}}
""")
        self.start(["nginx", "-p", str(self.directory), "-c", str(self.directory / "nginx.conf"), "-e",
                    str(self.directory / "error")], *self.ports)

    def block(self, number, server):
        lines = [f"location {path} {{ {directives} }}" for path, directives in server["locations"].items()]
        if server["listen"] == "unix":
            path = self.directory / f"{number}.sock"
            self.urls.append("http+unix://" + str(path).replace("/", "%2F"))
            lines.append(f"listen unix:{path};")
        else:
            port = real.free_port()
            self.ports.append(port)
            is_tls = server["listen"] == "tls"
            self.urls.append(f"{'https://localhost' if is_tls else 'http://127.0.0.1'}:{port}")
            lines.append(f"listen 127.0.0.1:{port}{' ssl' if is_tls else ''};")
            if is_tls:
                for kind, path in zip(("certificate", "certificate_key"), server["certificate"]):
                    lines.append(f"ssl_{kind} {self.write(f'{number}.{kind}', path.read_text())};")
        return "    server {\n" + "".join(f"        {line}\n" for line in lines) + "    }\n"
