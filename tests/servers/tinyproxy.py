# SPDX-License-Identifier: Apache-2.0
"""A real tinyproxy: lets all through, or only hosts that fit a regular expression, or those who know a password."""
from . import real


def is_there():
    return real.is_there("tinyproxy")


class Tinyproxy(real.RealServer):
    def __init__(self, allow=None, user=None, password=None):
        super().__init__()
        self.port = real.free_port()
        self.address = f"127.0.0.1:{self.port}"
        lines = [f"Port {self.port}", "Listen 127.0.0.1", "Timeout 60", "MaxClients 50", "LogLevel Info",
                 f'LogFile "{self.directory}/log"']
        if allow is not None:
            lines += [f'Filter "{self.write("filter", allow + chr(10))}"', "FilterDefaultDeny Yes", "FilterExtended On"]
        if user is not None:
            lines.append(f"BasicAuth {user} {password}")
        self.write("tinyproxy.conf", "\n".join(lines) + "\n")
        self.start(["tinyproxy", "-d", "-c", str(self.directory / "tinyproxy.conf")], self.port)

    def url(self, credentials=None):
        return f"http://{credentials + '@' if credentials else ''}{self.address}"
