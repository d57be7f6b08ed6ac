import tomllib

import pytest

from punchlist_apps.hosts import tomltable

PATH = ("mcp_servers", "punchlist")
VALUES = {"command": "/opt/a b/punch", "args": ["agent", "mcp", "--dialect", "native"], "required": True}
CONFIG = """# mine
model = "x"   # best

[mcp_servers.other]
command = "y"
args = [
  "[not.a.table]",
]

[profiles.a]
z = 1
"""


def test_put_and_remove_keep_other_bytes() -> None:
    changed = tomltable.put(CONFIG, PATH, VALUES)
    assert changed.startswith(CONFIG)
    assert tomllib.loads(changed)["mcp_servers"]["punchlist"] == VALUES
    assert tomltable.put(changed, PATH, VALUES) == changed
    assert tomltable.remove(changed, PATH) == CONFIG
    assert tomltable.remove(CONFIG, PATH) == CONFIG


def test_older_own_table_is_replaced_with_subtables() -> None:
    old = CONFIG.replace(
        "[profiles.a]",
        '[mcp_servers."punchlist"] # ours\ncommand = "old"\n\n[mcp_servers.punchlist.env]\nA = "1"\n\n[profiles.a]',
    )
    changed = tomltable.put(old, PATH, VALUES)
    assert tomllib.loads(changed) == {
        **tomllib.loads(CONFIG),
        "mcp_servers": {"other": tomllib.loads(CONFIG)["mcp_servers"]["other"], "punchlist": VALUES},
    }
    assert "# mine" in changed
    assert "old" not in changed


def test_text_between_tables_stays() -> None:
    ours = tomltable.put("a = 1\n", PATH, VALUES)
    added = '\n# the next one\n[mcp_servers.other]\ncommand = "y"\n'
    assert tomltable.remove(ours + added, PATH) == "a = 1\n" + added
    assert tomltable.remove(ours + "\n# the end\n", PATH) == "a = 1\n\n# the end\n"


def test_an_empty_file_gets_the_table_alone() -> None:
    assert tomltable.put("", PATH, {"command": "punch"}) == '[mcp_servers.punchlist]\ncommand = "punch"\n'


@pytest.mark.parametrize(("text", "line"), [("a = \n", 1), ("a = 1\n[b\n", 2), ("a = 1\na = 2\n", 2)])
def test_parse_error_has_line(text: str, line: int) -> None:
    with pytest.raises(tomltable.TomlError) as caught:
        tomltable.put(text, PATH, VALUES)
    assert caught.value.line == line


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "y" } }\n',
        'mcp_servers = { punchlist = { command = "y" } }\n',
        'mcp_servers.punchlist.command = "y"\n',
        'x = """\n[mcp_servers.punchlist]\n"""\n[mcp_servers.punchlist]\ncommand = "y"\n',
        "mcp_servers = 3\n",
    ],
)
def test_unsafe_change_is_rejected(text: str) -> None:
    with pytest.raises(tomltable.TomlError, match="by hand"):
        tomltable.put(text, PATH, VALUES)
