# SPDX-License-Identifier: Apache-2.0
"""The ways in which a hostile command prints a secret. As a program: prints the one that lies in the file `loot`, in the way
that its argument names."""
import base64
import os
import pathlib
import sys
import time
import urllib.parse


def ways(secret):
    """Name to what is written: pieces of (descriptor, bytes), with a pause between them."""
    data, half = secret.encode(), len(secret) // 2

    def encoded(before, after="", alphabet=base64.b64encode):
        return alphabet(f"{before}{secret}{after}".encode()).decode()

    texts = {
        "raw": f"token={secret};\n", "often": (secret + " ") * 50, "bearer": f"Authorization: Bearer {secret}\n",
        "basic": f"> Authorization: Basic {encoded('alice:')}\n",
        "base64": encoded(""), "base64_1": encoded("x", "tail"), "base64_2": encoded("xy", "t"),
        "base64_url": encoded("abc?", "~~~", base64.urlsafe_b64encode).rstrip("="),
        "base64_wrapped": encoded("h" * 50, "t" * 50, base64.encodebytes), "base64_head": "x" * 20 + encoded("user:")[:30],
        "percent": "".join(f"%{byte:02X}" for byte in data), "percent_lower": "".join(f"%{byte:02x}" for byte in data),
        "url": f"http://host/?token={urllib.parse.quote(secret, safe='')}&x=1",
        "url_twice": urllib.parse.quote(urllib.parse.quote(secret, safe=""), safe=""),
        "partly_percent": "".join(f"%{ord(c):02X}" if i % 3 else c for i, c in enumerate(secret)),
        "unicode": "".join(f"\\u{ord(c):04x}" for c in secret),
        "partly_unicode": "".join(f"\\u{ord(c):04X}" if i % 2 else c for i, c in enumerate(secret)),
        "slashes": secret.replace("/", "\\/"),
        "head": "x" * 20 + secret[:12], "tail": secret[-12:] + "x" * 20, "inside": secret[3:min(15, len(secret))],
        "dots": f"using {secret[:10]}... or ...{secret[-10:]}\n",
        "at_cut": "".join(f"{number} {secret}\n" for number in range(4000)),  # where the output is cut: everywhere
    }
    pieces = {name: [(1, text.encode())] for name, text in texts.items()}
    pieces["stderr"] = [(2, data + b"\n")]
    pieces["two_writes"] = [(1, b"a" + data[:7]), (1, data[7:] + b"b")]
    pieces["two_streams"] = [(1, b"x" * 30 + data[:half]), (2, data[half:] + b"y" * 30)]
    pieces["environment"] = [(1, "".join(f"{name}={value}\n" for name, value in os.environ.items()).encode())]
    return pieces


if __name__ == "__main__":
    for stream, text in ways(pathlib.Path("loot").read_text())[sys.argv[1]]:
        while text:
            text = text[os.write(stream, text):]
        time.sleep(0.02)  # so that two writes are likely read as two; either way nothing may come out
