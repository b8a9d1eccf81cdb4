# SPDX-License-Identifier: Apache-2.0
"""The encodings in which tools print a secret. As a program: prints that in the file `loot` as its argument says."""
import base64
import json
import os
import pathlib
import sys
import time
import urllib.parse


def ways(secret):
    """Name to what is written: chunks of (descriptor, bytes), with a pause between them."""
    data = secret.encode()

    def encoded(before, after="", encode=base64.b64encode):
        return encode(f"{before}{secret}{after}".encode()).decode()

    texts = {
        "raw": f"token={secret};\n", "often": (secret + " ") * 50,
        "basic": f"> Authorization: Basic {encoded('alice:')}\n",
        "base64": encoded(""), "base64_1": encoded("x", "tail"), "base64_2": encoded("xy", "t"),
        "base64_url": encoded("abc?", "~~~", base64.urlsafe_b64encode).rstrip("="),
        "base64_wrapped": encoded("h" * 50, "t" * 50, base64.encodebytes),
        "percent": "".join(f"%{byte:02X}" for byte in data), "percent_lower": "".join(f"%{byte:02x}" for byte in data),
        "url": f"http://host/?token={urllib.parse.quote(secret, safe='')}&x=1",
        "json": json.dumps({"token": f'"{secret}"'}), "json_slashes": json.dumps([secret]).replace("/", "\\/"),
        "unicode": "".join(f"\\u{ord(c):04x}" for c in secret),
        "at_cut": "".join(f"{number} {secret}\n" for number in range(4000)),  # where the output is cut: everywhere
    }
    chunks = {name: [(1, text.encode())] for name, text in texts.items()}
    chunks["stderr"] = [(2, data + b"\n")]
    chunks["two_writes"] = [(1, b"a" + data[:7]), (1, data[7:] + b"b")]
    chunks["environment"] = [(1, "".join(f"{name}={value}\n" for name, value in os.environ.items()).encode())]
    return chunks


if __name__ == "__main__":
    for stream, text in ways(pathlib.Path("loot").read_text())[sys.argv[1]]:
        while text:
            text = text[os.write(stream, text):]
        time.sleep(0.02)  # so that two writes are likely read as two; either way nothing may come out
