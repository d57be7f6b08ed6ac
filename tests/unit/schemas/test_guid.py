"""The accepted spellings of a GUID."""

import re

import pytest

from punchlist_schemas.guid import BRACED_PATTERN, canonical, spellings

GUID = "0f9619ff-8b86-d011-b42d-00c04fc964ff"


@pytest.mark.parametrize("spelled", [*spellings(GUID), f"{{{GUID}}}", GUID.capitalize()])
def test_each_spelling_has_one_canonical_form(spelled: str) -> None:
    assert canonical(spelled) == GUID
    assert spellings(spelled) == spellings(GUID)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "website",
        GUID[:-1],
        f"{GUID}0",
        GUID.replace("-", "", 1),
        f"{{{GUID}",
        f"{GUID}}}",
        "g" + GUID[1:],
        f"{GUID}\n",
    ]
    + [f"{{{GUID.replace('-', '')}}}", "my:" + GUID, "０" + GUID[1:]],
)
def test_other_names_have_one_spelling(name: str) -> None:
    assert canonical(name) == name
    assert spellings(name) == ()


def test_only_a_complete_guid_can_have_braces() -> None:
    assert re.search(BRACED_PATTERN, f"{{{GUID}}}")
    assert not any(re.search(BRACED_PATTERN, each) for each in ("{website}", f"{{{GUID}}}x", f"{{{GUID}}}\n"))
