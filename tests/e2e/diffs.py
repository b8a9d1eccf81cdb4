# SPDX-License-Identifier: Apache-2.0
"""Parts of unified diffs, and what a workspace holds before and after one."""
import os

# Parts of diffs: (path, line), (path, old line, new line), (path, target), (path, new path), (path, line), (path).
NEW = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{1}\n"
CHANGE = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-{1}\n+{2}\n"
LINK = NEW.replace("100644", "120000") + "\\ No newline at end of file\n"
MOVE = "diff --git a/{0} b/{1}\nrename from {0}\nrename to {1}\n"
DELETE = "diff --git a/{0} b/{0}\ndeleted file mode 100644\n--- a/{0}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{1}\n"
EXECUTABLE = "diff --git a/{0} b/{0}\nold mode 100644\nnew mode 100755\n"


def state(directory):
    """Types, modes, targets and contents of all that is below. Temporary files would show."""
    found = {}
    for path in sorted(directory.rglob("*")):
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(directory))] = (oct(path.lstat().st_mode), content)
    return found
