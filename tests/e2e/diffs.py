# SPDX-License-Identifier: Apache-2.0
"""Parts of unified diffs."""
# Parts of diffs: (path, line), (path, old line, new line), (path, target), (path, new path), (path, line), (path).
NEW = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{1}\n"
CHANGE = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-{1}\n+{2}\n"
LINK = "diff --git a/{0} b/{0}\nnew file mode 120000\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{1}\n\\ No newline at end of file\n"
MOVE = "diff --git a/{0} b/{1}\nrename from {0}\nrename to {1}\n"
DELETE = "diff --git a/{0} b/{0}\ndeleted file mode 100644\n--- a/{0}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{1}\n"
EXECUTABLE = "diff --git a/{0} b/{0}\nold mode 100644\nnew mode 100755\n"
