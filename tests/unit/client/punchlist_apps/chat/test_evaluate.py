"""The cases of the evaluation example, run by the rules and by lying models."""

from pathlib import Path

import pytest

from punchlist import AsyncClient
from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.worker import Worker
from punchlist_bench.figures.evaluate import evaluate, parse_cases
from punchlist_testing.scripted_model import liar, serving

CASES = parse_cases((Path(__file__).resolve().parents[5] / "examples/chat/cases.jsonl").read_bytes())


async def test_rules_pass_cases_and_clean_up(client: AsyncClient) -> None:
    rows = await evaluate(client, CASES, Worker(), 2)
    assert rows == [(case.id, "2/2", "") for case in CASES]
    left = (await client.conversations(kind="any")).conversations
    assert not [one for one in left if one.conversation.startswith("eval-")]


async def test_lying_model_fails_but_answers_stay_true(client: AsyncClient) -> None:
    with serving(liar) as script:
        rows = await evaluate(client, CASES, Worker(Completions("m", script.url)), 1)
    assert not any("TRUE" in why for _, _, why in rows)


def test_invalid_case_is_rejected() -> None:
    with pytest.raises(ValueError, match="int"):
        parse_cases(b'{"id": 7}')
