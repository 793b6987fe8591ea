"""A small patch and a header as the tool wants it."""

from __future__ import annotations

HEADER = "Description: a test\nOrigin: this test\nForwarded: not-needed\nFixes: none\n\n"
ONE_TO_UNO = """\
diff --git a/src/numbers.txt b/src/numbers.txt
--- a/src/numbers.txt
+++ b/src/numbers.txt
@@ -1,4 +1,4 @@
-one
+uno
 two
 three
 four
"""
