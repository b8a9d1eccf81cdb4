# SPDX-License-Identifier: Apache-2.0
"""A real S3-compatible server (s3rver, from npm), and presigned URLs (version 2, with the content type) for it."""
import base64
import hashlib
import hmac
import pathlib
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import packages
from . import real

KEY, BUCKET = "S3RVER", "results"  # key and secret are the same there


def presigned(url, seconds=600):
    """For a PUT of any body without a content type."""
    expires = int(time.time()) + seconds
    words = f"PUT\n\n\n{expires}\n{urllib.parse.urlsplit(url).path}"
    signature = base64.b64encode(hmac.new(KEY.encode(), words.encode(), hashlib.sha1).digest()).decode()
    return f"{url}?" + urllib.parse.urlencode({"AWSAccessKeyId": KEY, "Expires": expires, "Signature": signature})


class S3(real.RealServer):
    def __init__(self):
        program = packages.node_modules("s3rver-3.7.1", "s3rver@3.7.1") / ".bin" / "s3rver"
        super().__init__()
        port = real.free_port()
        self.url = f"http://127.0.0.1:{port}/{BUCKET}/"
        options = ["-a", "127.0.0.1", "-p", str(port), "--silent", "--configure-bucket", BUCKET]
        self.start([program, "-d", self.directory, *options], port, user=None)

    def has(self, path):
        """The object's bytes, or None."""
        stored = self.directory / BUCKET / f"{path}._S3rver_object"
        return stored.read_bytes() if stored.exists() else None
