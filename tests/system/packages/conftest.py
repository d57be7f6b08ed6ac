"""Installs and uses the packages that `make dist` built.

`make dist TEST=1` runs these tests. They aren't part of the suite, because they download packages.
"""

import os

collect_ignore_glob = [] if os.environ.get("DIST_TEST") else ["test_*"]
