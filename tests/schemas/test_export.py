import json
import subprocess
import sys
from pathlib import Path

import pytest

from punchlist_schemas import export

GENERATED = Path(__file__).parents[2] / "schemas" / "json"


def test_the_committed_files_are_what_the_code_says() -> None:
    assert export.stale(GENERATED) == []


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "json"
    assert export.main(["--out", str(out)]) == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == export.documents()
    # Another process has other hashes: an order taken from a set would show.
    again = tmp_path / "again"
    command = [sys.executable, "-m", "punchlist_schemas.export", "--out", str(again)]
    path = str(Path(export.__file__).parents[1])
    subprocess.run(command, check=True, timeout=30, env={"PYTHONPATH": path, "PYTHONHASHSEED": "7"})
    assert {path.name: path.read_bytes() for path in again.iterdir()} == export.documents()


def test_the_check_names_stale_and_missing_files_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export.main(["--out", str(tmp_path)])
    assert export.main(["--check", "--out", str(tmp_path)]) == 0
    with (tmp_path / "errors.json").open("ab") as file:
        file.write(b"\n")
    (tmp_path / "openrpc.json").unlink()
    assert export.main(["--check", "--out", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert f"stale: {tmp_path}/errors.json\n" in told
    assert f"stale: {tmp_path}/openrpc.json\n" in told
    assert "things" not in told
    assert not (tmp_path / "openrpc.json").exists()


@pytest.mark.parametrize("name", ["events.schema.json", "things.schema.json"])
def test_every_reference_of_a_schema_leads_somewhere(name: str) -> None:
    text = export.documents()[name].decode()
    schema = json.loads(text)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    references = {part.split('"')[1] for part in text.split('"$ref":')[1:]}
    assert references <= {f"#/$defs/{name}" for name in schema["$defs"]}
    assert "discriminator" not in text
