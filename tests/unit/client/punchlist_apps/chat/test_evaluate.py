"""The cases of the example, scored: rules pass them, and of a model nothing false is said."""

from pathlib import Path

import pytest

from punchlist import AsyncClient
from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.worker import Worker
from punchlist_bench.figures.evaluate import evaluate, parse_cases
from punchlist_testing.scripted_model import liar, serving

CASES = parse_cases((Path(__file__).resolve().parents[5] / "examples/chat/cases.jsonl").read_bytes())


async def test_the_rules_pass_the_cases_and_leave_nothing_behind(client: AsyncClient) -> None:
    rows = await evaluate(client, CASES, Worker(), 2)
    assert rows == [(case.id, "2/2", "") for case in CASES]
    left = (await client.conversations(kind="any")).conversations
    assert not [one for one in left if one.conversation.startswith("eval-")]


async def test_a_liar_fails_what_it_did_not_do_and_still_nothing_false_is_said(client: AsyncClient) -> None:
    with serving(liar) as script:
        rows = await evaluate(client, CASES, Worker(Completions("m", script.url)), 1)
    assert not any("TRUE" in why for _, _, why in rows)


def test_a_case_of_another_form_is_rejected() -> None:
    with pytest.raises(ValueError, match="int"):
        parse_cases(b'{"id": 7}')
