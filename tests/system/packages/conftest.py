"""Installs and uses what `make dist` built. Run by `make dist TEST=1` and not with the suite, since it downloads."""

import os

collect_ignore_glob = [] if os.environ.get("DIST_TEST") else ["test_*"]
