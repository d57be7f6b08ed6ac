"""The process that a host started as its MCP server: all that a session takes from a process.

It may be another process than the one that serves the session. Therefore the server reads this value, never the
environment, the working directory or the process id of the process that it runs in.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from punchlist.base import host_variables
from punchlist.base.project import host_directory


@lru_cache(maxsize=256)
def _resolve_links(path: str) -> str:
    # Only once, because the directory's file system may cease to respond.
    return os.path.realpath(path)


class ServerProcess(NamedTuple):
    """A process that a host started.

    Attributes:
        env: Its environment variables, as selected by `punchlist.base.host_variables`.
        directory: Its working directory, an absolute path without links.
        pid: Its id; the host is one of its ancestors.
    """

    env: Mapping[str, str]
    directory: str
    pid: int

    @property
    def project_directory(self) -> str:
        """The directory of the host's project: from a host's variable, else the working directory.

        Empty if that is a plugin's directory, which says nothing about the project.
        """
        if (directory := host_directory(self.env)) is not None:
            return self.resolve(directory)
        return "" if self.is_in_plugin else self.directory

    @property
    def is_in_plugin(self) -> bool:
        """Whether the working directory is that of the plugin that configures the server, or below it."""
        roots = [_resolve_links(self.resolve(root)) for name in host_variables.PLUGIN if (root := self.env.get(name))]
        return any(os.path.commonpath((root, self.directory)) == root for root in roots)

    def resolve(self, path: str) -> str:
        """Return a path as an absolute path, relative to the process's working directory."""
        return os.path.join(self.directory, path)
