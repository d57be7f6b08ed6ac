"""Commands whose placeholders are filled with a task's text."""

import pytest

from punchlist_apps.cli.printing.failure import UsageError
from punchlist_apps.cli.running.command import Command, UnusableText
from punchlist_schemas.things import Task


def task(title: str = "t", description: str = "") -> Task:
    return Task(
        id="7",
        title=title,
        description=description,
        status="in_progress",
        priority="normal",
        created_at=1,
        updated_at=1,
        status_changed_at=1,
        version=1,
    )


def test_placeholders_are_filled_once() -> None:
    words = Command(["echo", "x{id}-{title}", "{description}", "{prompt}", "{{title}}", "{}", "{A}"])
    assert words.build_words(task("{id}", "$(d)")) == [
        "echo",
        "x7-{id}",
        "$(d)",
        "{id}\n\n$(d)",
        "{title}",
        "{}",
        "{A}",
    ]


@pytest.mark.parametrize("title", ["--eval=$(shell touch PWNED)", "-", "--dangerously-skip-permissions"])
@pytest.mark.parametrize("word", ["{title}", "{title}.txt", "{prompt}"])
def test_a_text_with_a_leading_dash_is_rejected(title: str, word: str) -> None:
    with pytest.raises(UnusableText, match="begins with a dash, and echo could read it as an option"):
        Command(["echo", word]).build_words(task(title))
    assert Command(["echo", f"title={word}", "--title={title}"]).build_words(task(title))[2] == f"--title={title}"


def test_a_dash_after_an_empty_placeholder_is_rejected() -> None:
    with pytest.raises(UnusableText, match="begins with a dash"):
        Command(["echo", "{description}{title}"]).build_words(task("-x"))


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        ("sh -c|echo {title}", "sh"),
        ("/bin/bash -euo pipefail -c|make {description}", "bash"),
        ("nice env zsh -lc|{prompt}", "zsh"),
        ("python3.11 -c|print('{title}')", "python3.11"),
        ("perl -ne|{title}", "perl"),
        ("node|--eval={title}", "node"),
        ("ssh host do|{title}", "ssh"),
        ("bash -x|{title}", "bash"),
        ("sh|./{title}", "sh"),
        ("xargs sh|{title}", "xargs"),
        ("make|{title}", "make"),
        ("nice make -C .|T={title}", "make"),
        ("env A=1|{title}", "env"),
        ("timeout 5|{title}", "timeout"),
        ("sudo -u nobody-here|{title}", "sudo"),
        ("nice timeout|{title}", "timeout"),
        ("awk|{title}", "awk"),
        ("vim|{title}", "vim"),
        ("|{title}", "punch run"),
        ("|./{title}", "punch run"),
    ],
)
def test_a_placeholder_in_a_program_is_rejected(command: str, runner: str) -> None:
    words, last = command.split("|")
    with pytest.raises(UsageError, match=f"^{runner} would run the text of a task as a program: .*PUNCHLIST_TITLE"):
        Command([*words.split(), last])


def test_a_shell_accepts_placeholders_as_arguments() -> None:
    script = 'echo "$1" {id} {{title}}'
    assert Command(["sh", "-c", script, "x", "{title}"]).build_words(task("$(d)"))[2:] == [
        'echo "$1" 7 {title}',
        "x",
        "$(d)",
    ]
    assert Command(["python3", "-m", "pytest", "{title}"]).build_words(task())[3] == "t"
    assert Command(["echo", "-e", "{title}"]).build_words(task()) == ["echo", "-e", "t"]
    for words in (
        ["env", "A=1", "echo", "{title}"],
        ["nice", "-n", "5", "echo", "-p", "{title}"],
        ["echo", "make", "{title}"],
    ):
        assert Command(words).build_words(task())[-1] == "t", "the text is an argument of a fixed program"


def test_an_empty_argument_is_rejected_with_advice() -> None:
    with pytest.raises(UnusableText, match=r"\{description\} is empty: \{prompt\} is the title with the description"):
        Command(["echo", "{description}"]).build_words(task())
    assert Command(["echo", "{prompt}"]).build_words(task()) == ["echo", "t"]


def test_a_prompt_does_not_repeat_the_title() -> None:
    command = Command(["echo", "{prompt}"])
    for title, description, prompt in (
        ("Book", "a window seat", "Book\n\na window seat"),
        ("Book ✈️", "Book ✈️ to 東京\nwindow seat\n", "Book ✈️ to 東京\nwindow seat"),
        ("t" * 80, "t" * 120, "t" * 120),
        ("Book", " \n", "Book"),
    ):
        assert command.build_words(task(title=title, description=description)) == ["echo", prompt]


def test_an_unknown_placeholder_is_rejected() -> None:
    with pytest.raises(
        UsageError, match=r"\{owner\} is not a placeholder: use .*, or \{\{owner\}\} for the text itself"
    ):
        Command(["echo", "{owner}"])


def test_a_missing_command_is_rejected() -> None:
    with pytest.raises(UsageError, match="command not found: 'mkae'; no task was touched"):
        Command(["mkae", "{title}"])
