"""The extension in a real VS Code, with a real daemon, while another client changes the list."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from punchlist import Client, Gate, connect
from punchlist_testing.daemon import Running, Spawned
from punchlist_testing.optional import needs
from punchlist_testing.vscode import Editor, Window, chromium, is_installed

PICTURES = Path(__file__).parents[3] / "docs/pictures"

pytestmark = [needs("vscode", is_installed()), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def editor(browser: Any, daemon: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with Editor(browser, daemon.socket, tmp_path_factory.mktemp("editor")) as editor:
        yield editor


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with some code."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "src").mkdir()
    (folder / "src/a.py").write_text("one\ntwo\n# TODO: say it better\n")
    return folder


@pytest.fixture(scope="module")
def window(editor: Editor, project: Path) -> Window:
    return editor.window(project)


def opened(window: Window, plan: Any, *titles: str) -> Window:
    for title in titles:
        plan.add(title)
    window.run("showFinished")
    window.open(plan.id)
    window.until("punchlist.list.size === given[0]", len(titles))
    return window


def test_folder_list_opens_and_follows_an_agent(editor: Editor, plan: Any, tmp_path: Path, client: Client) -> None:
    (tmp_path / ".punchlist.toml").write_text(f'conversation = "{plan.id}"\n')
    window = editor.window(tmp_path)
    window.until("punchlist.list?.name === given[0] && punchlist.list.ready", plan.id)
    window.js("await vscode.commands.executeCommand('punchlist.tasks.focus')")
    window.page.get_by_text("Nothing to do.").wait_for()
    for number in range(50):
        plan.add(f"Task {number + 1}", parent="1" if number in (3, 4) else None)
    for number in range(10, 20):
        plan.start(str(number))
        plan.complete(str(number))
    plan.start("30")
    plan.fail("30", "no paper")
    rest = [
        f"{'completed' if 10 <= n < 20 else 'failed' if n == 30 else 'pending'} #{n} Task {n}"
        for n in range(2, 51)
        if n not in (4, 5)
    ]
    window.shows(["pending #1 Task 1", "  pending #4 Task 4", "  pending #5 Task 5", *rest])
    window.sees("#4 Task 4")
    assert window.rows()[:4] == ["#1 Task 1", "#4 Task 4", "#5 Task 5", "#2 Task 2"]
    window.page.get_by_text(f"{plan.id} 39/50").first.wait_for()
    plan.edit("50", gate=Gate(yes=True))
    plan.complete("50")
    window.page.locator(".action-item .badge-content", has_text="1").wait_for()
    plan.approve("50")
    window.close()


def test_push_draws_only_changed_rows(window: Window, plan: Any) -> None:
    plan.add_many([{"title": f"Task {number}"} for number in range(1000)])
    window.open(plan.id)
    window.until("punchlist.list.size === 1000")
    window.sees("#3 Task 2")
    window.until("punchlist.tree.getChildren().length === 1000")
    drawn = window.js("return punchlist.tree.drawn")
    plan.start("2")
    window.page.locator(".codicon-play-circle").first.wait_for()
    plan.add("One more", parent="3")
    window.sees("#1001 One more")
    # The two new rows, and the row that has become a parent.
    assert window.js("return punchlist.tree.drawn") - drawn == 3


HOSTILE = [
    "\x1b[31mred",
    "left \u202egnp",
    "$(alert) $(sync~spin)",
    "[click](command:workbench.action.closeWindow)",
    "<b>b</b> <img src=x onerror=alert(1)>",
    "`rm -rf` **b**",
    "a" * 500,
    "🙂 \u200b",
]


def test_hostile_titles_are_shown_as_text(window: Window, plan: Any) -> None:
    opened(window, plan, *HOSTILE)
    window.sees("#8 🙂 \\u200b")
    shown = window.rows()
    assert shown[0] == "#1 \\x1b[31mred"
    assert shown[1] == "#2 left \\u202egnp"
    assert shown[2:6] == [f"#{at + 1} {HOSTILE[at]}" for at in range(2, 6)]
    assert window.page.locator(".monaco-list-row img").count() == 0
    plan.take("$(alert)[x](command:y)\x1b")
    window.run("done", "1")
    said = window.page.locator(".notification-list-item-message").first
    said.wait_for()
    assert said.locator("a").count() == 0
    window.js("await vscode.commands.executeCommand('notifications.clearAll')")
    assert [task.title for task in plan.list()] == HOSTILE


def test_boxes_and_commands_change_the_list(window: Window, plan: Any) -> None:
    opened(window, plan, "One", "Two", "Three", "Four")
    window.sees("#1 One").locator(".custom-view-tree-node-item-checkbox").click()
    window.shows(["completed #1 One", "pending #2 Two", "pending #3 Three", "pending #4 Four"])
    window.run("reopen", "1")
    window.run("fail", "2", "no paper")
    window.run("start", "3")
    window.run("edit", "3", "Drei")
    window.run("addPart", "1", "Part")
    window.run("moveUp", "4")
    window.run("raise", "4")
    window.run("claim", "4")
    window.run("note", "1", "begun")
    window.shows(["pending #1 One", "  pending #5 Part", "failed #2 Two", "in_progress #4 Four", "in_progress #3 Drei"])
    window.sees("no paper")
    assert (plan.get("2").fail_reason, plan.get("4").priority) == ("no paper", "high")
    assert plan.get("4").owner.startswith("vscode/")
    window.run("done", "1", ["1", "5", "4"])
    window.shows(
        ["completed #1 One", "  completed #5 Part", "failed #2 Two", "completed #4 Four", "in_progress #3 Drei"]
    )
    window.run("hideFinished")
    window.until("punchlist.tree.getChildren().length === 1")
    assert window.tree() == ["in_progress #3 Drei"]
    window.run("showFinished")


def test_dragged_tasks_move_before_the_drop_target(window: Window, plan: Any) -> None:
    opened(window, plan, "One", "Two", "Three", "Four")
    window.drag("#4 Four", onto="#2 Two")
    window.shows(["pending #1 One", "pending #4 Four", "pending #2 Two", "pending #3 Three"])
    plan.add("Part", parent="1")
    window.drag("#3 Three", onto="#5 Part")
    window.until("punchlist.list.parent('3') === '1' && punchlist.tree.getChildren('1')[0] === '3'")


def test_filter_shows_matches_and_their_parents(window: Window, plan: Any) -> None:
    opened(window, plan, "One", "Two", "Three")
    plan.add("Part", parent="2", labels=["web"])
    window.until("punchlist.list.size === 4")
    window.run("filter", "+web")
    window.until("punchlist.tree.getChildren().join() === '2'")
    plan.edit("3", labels=["web"])
    window.until("punchlist.tree.getChildren().join() === '2,3'")
    window.run("clearFilter")
    window.until("punchlist.tree.getChildren().join() === '1,2,3'")


def test_deletion_asks_and_undo_is_immediate(window: Window, plan: Any) -> None:
    opened(window, plan, "One", "Two", "Three")
    page = window.page
    window.begin("delete", "1", ["1", "2"])
    page.get_by_text("Delete 2 tasks?").wait_for()
    dialog = page.locator(".monaco-dialog-box")
    dialog.get_by_role("button", name="Cancel").click()
    window.begin("delete", "1", ["1", "2"])
    dialog.get_by_role("button", name="Delete").click()
    window.shows(["pending #3 Three"])
    plan.add("Four")
    window.run("undo")
    window.shows(["pending #1 One", "pending #2 Two", "pending #3 Three", "pending #4 Four"])
    page.locator(".notification-list-item", has_text="Undone: ").get_by_role("button", name="Redo", exact=True).click()
    window.shows(["pending #3 Three", "pending #4 Four"])
    window.js("await vscode.commands.executeCommand('notifications.clearAll')")


def test_agents_claim_is_respected_and_its_box_reset(window: Window, plan: Any) -> None:
    opened(window, plan, "One")
    plan.take("claude/7")
    window.sees("@claude/7").locator(".custom-view-tree-node-item-checkbox").click()
    window.page.locator(".notification-list-item-message", has_text="claude/7").wait_for()
    window.page.locator(".custom-view-tree-node-item-checkbox[aria-checked=false]").wait_for()
    assert plan.get("1").status == "in_progress"
    window.js("await vscode.commands.executeCommand('notifications.clearAll')")


def test_description_never_overwrites_anothers_change(window: Window, plan: Any) -> None:
    opened(window, plan, "One")
    window.run("editDescription", "1")
    write = """
        const document = vscode.workspace.textDocuments.find((one) => one.uri.scheme === 'punchlist');
        const edit = new vscode.WorkspaceEdit();
        edit.replace(document.uri, new vscode.Range(0, 0, document.lineCount, 0), given[0]);
        await vscode.workspace.applyEdit(edit);
        while (document.isDirty) await document.save();"""
    window.js(write, "# Mine\n")
    assert plan.get("1").description == "# Mine\n"
    plan.edit("1", description="# Else\n")
    text = "vscode.workspace.textDocuments.find((one) => one.uri.scheme === 'punchlist').getText()"
    window.until(f"{text} === '# Else\\n'")
    window.js(
        "const document = vscode.workspace.textDocuments.find((one) => one.uri.scheme === 'punchlist');"
        "const edit = new vscode.WorkspaceEdit();"
        "edit.insert(document.uri, new vscode.Position(0, 0), 'typed ');"
        "await vscode.workspace.applyEdit(edit);"
    )
    plan.edit("1", description="# Evil\n")
    window.until("punchlist.list.get('1').description === '# Evil\\n'")
    window.js("void vscode.workspace.textDocuments.find((one) => one.uri.scheme === 'punchlist').save()")
    window.page.get_by_text("The description of #1 was changed by someone else; yours is not saved.").first.wait_for()
    assert plan.get("1").description == "# Evil\n"
    window.page.get_by_role("button", name="Overwrite").first.click()
    window.until("punchlist.list.get('1').description === 'typed # Else\\n'")
    # VS Code itself detects a change in a file's size before it calls the extension.
    window.js(
        "const document = vscode.workspace.textDocuments.find((one) => one.uri.scheme === 'punchlist');"
        "const edit = new vscode.WorkspaceEdit();"
        "edit.insert(document.uri, new vscode.Position(0, 0), 'again ');"
        "await vscode.workspace.applyEdit(edit);"
    )
    plan.edit("1", description="# Longer than before\n")
    window.until("punchlist.list.get('1').description === '# Longer than before\\n'")
    window.js("void vscode.workspace.textDocuments.find((one) => one.uri.scheme === 'punchlist').save()")
    window.page.get_by_text("The content of the file is newer", exact=False).first.wait_for()
    assert plan.get("1").description == "# Longer than before\n"
    window.js(
        "await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');"
        "await vscode.commands.executeCommand('notifications.clearAll')"
    )


def test_details_and_history_follow_the_list(window: Window, plan: Any) -> None:
    opened(window, plan, "One")
    window.run("details", "1")
    shown = "vscode.workspace.textDocuments.filter((one) => one.uri.scheme === 'punchlist-read')"
    page = f"{shown}.find((one) => one.uri.path.endsWith(given[0]))?.getText()"
    window.until(f"{page}?.startsWith('# #1 One')", "1.md")
    plan.edit("1", description="see src/a.py:2", priority="urgent")
    window.until(f"{page}?.includes('urgent') && {page}.includes('see src/a.py:2')", "1.md")
    window.run("history")
    window.until(f"{page}?.includes('agent  TaskEdited')", "history.txt")
    plan.start("1")
    window.until(f"{page}?.includes('StatusChanged')", "history.txt")
    links = window.js(
        f"const uri = {shown}.find((one) => one.uri.path.endsWith('history.txt')).uri;"
        "const links = await vscode.commands.executeCommand('vscode.executeLinkProvider', uri);"
        "return links.map((link) => link.target.toString(true))"
    )
    assert any(link.startswith('command:punchlist.undoVersion?["4",", by agent at ') for link in links), links
    window.begin("undoVersion", "4", ", by agent")
    dialog = window.page.locator(".monaco-dialog-box")
    dialog.get_by_text("Take back the change that made version 4, by agent?").wait_for()
    dialog.get_by_role("button", name="Take Back", exact=True).click()
    window.until("punchlist.list.get('1').status === 'pending'")
    window.run("compare", "2")
    window.until(f"{page}?.startsWith('#1 One  (pending)')", "version-2.txt")
    window.js("await vscode.commands.executeCommand('workbench.action.closeAllEditors')")


def test_tasks_link_to_code_and_back(window: Window, plan: Any, project: Path) -> None:
    opened(window, plan, "Fix src/a.py:2", "Nowhere")
    window.run("openPlace", "1")
    window.until("vscode.window.activeTextEditor?.selection.active.line === 1")
    actions = """
        const uri = vscode.Uri.file(given[0]);
        const range = new vscode.Range(given[1], 0, given[1], 0);
        const found = await vscode.commands.executeCommand('vscode.executeCodeActionProvider', uri, range);
        return found.map((one) => one.title);"""
    assert f"Add to {plan.id}" in window.js(actions, str(project / "src/a.py"), 2)
    assert f"Add to {plan.id}" not in window.js(actions, str(project / "src/a.py"), 0)
    window.js("const editor = vscode.window.activeTextEditor; editor.selection = new vscode.Selection(2, 0, 2, 0)")
    window.begin("addHere")
    window.page.locator(".quick-input-widget input").wait_for()
    assert window.page.locator(".quick-input-widget input").input_value() == "say it better"
    window.page.keyboard.press("Enter")
    window.until("punchlist.list.get('3')?.title === 'say it better'")
    assert [(link.kind, link.to) for link in plan.get("3").links] == [("path", "src/a.py:3")]
    window.js(
        "await vscode.commands.executeCommand('workbench.action.closeAllEditors');"
        "await vscode.commands.executeCommand('punchlist.tasks.focus')"
    )


def test_two_windows_show_the_same_list(editor: Editor, window: Window, plan: Any) -> None:
    opened(window, plan, "One", "Two")
    other = editor.window()
    other.open(plan.id)
    with plan.watch():
        window.page.get_by_text(re.compile("with (vscode, agent|agent, vscode)$")).first.wait_for()
    window.page.get_by_text(re.compile("with vscode$")).first.wait_for()
    window.run("done", "1")
    other.run("add", "Three")
    for one in (window, other):
        one.shows(["completed #1 One", "pending #2 Two", "pending #3 Three"])
    other.close()
    window.until("punchlist.presence.others.length === 0")


def test_ten_thousand_tasks_are_shown_in_pages(window: Window, plan: Any) -> None:
    for start in range(0, 10_000, 1000):
        plan.add_many([{"title": f"Task {start + number}"} for number in range(1000)])
    window.open(plan.id)
    window.sees("#1 Task 0")
    assert window.js("return punchlist.tree.getChildren().length") == 1001
    assert window.tree()[-1] == " 9,000 more…"
    window.run("more", "more:")
    assert window.tree()[-1] == " 8,000 more…"
    plan.complete("1")
    window.until("punchlist.list.get('1').status === 'completed'")


def test_list_of_another_project_is_not_opened(editor: Editor, plan: Any, tmp_path: Path) -> None:
    plan.add("Secret")
    (tmp_path / ".punchlist.toml").write_text(f'conversation = "{plan.id}"\n')
    window = editor.window(tmp_path)
    window.js("await vscode.commands.executeCommand('punchlist.tasks.focus')")
    window.page.get_by_text("names a list that was not made for it", exact=False).first.wait_for()
    assert window.js("return punchlist.list") is None
    assert window.page.get_by_text("Secret").count() == 0
    window.close()


def test_restarted_daemon_loses_nothing(browser: Any, tmp_path: Path) -> None:
    process = Spawned(tmp_path / "daemon")
    try:
        with Editor(browser, process.socket, tmp_path / "editor") as editor:
            window = editor.window()
            window.js("await vscode.commands.executeCommand('punchlist.tasks.focus')")
            window.page.get_by_text("The command punch was not found", exact=False).or_(
                window.page.get_by_text("The daemon does not respond", exact=False)
            ).first.wait_for()
            process.start()
            window.open("website")
            with connect(socket=process.socket, autostart=False) as client:
                client.conversation("website").add("One")
            window.sees("#1 One")
            window.run("editDescription", "1")
            document = "vscode.workspace.textDocuments.find((one) => one.uri.scheme === 'punchlist')"
            window.js(f"""
                const edit = new vscode.WorkspaceEdit();
                edit.insert({document}.uri, new vscode.Position(0, 0), 'typed');
                await vscode.workspace.applyEdit(edit);""")
            process.kill()
            window.page.get_by_text("Away, showing the last known list", exact=False).first.wait_for()
            assert window.tree() == ["pending #1 One"]
            window.run("done", "1")
            window.page.get_by_text("nothing was changed", exact=False).first.wait_for()
            assert window.js(f"return [await {document}.save(), {document}.getText()]") == [False, "typed"]
            process.start()
            window.until("punchlist.connection.connected")
            assert window.js(f"return await {document}.save()") is True
            window.until("punchlist.list.get('1').description === 'typed'")
            # A suspended daemon doesn't block the editor. Its unanswered change is sent again to the next daemon.
            assert process.process is not None
            process.process.send_signal(signal.SIGSTOP)
            window.begin("add", "Two")
            assert window.js("return 1") == 1
            process.restart()
            window.shows(["pending #1 One", "pending #2 Two"])
            window.page.get_by_text("Away, showing the last known list", exact=False).first.wait_for(state="hidden")
    finally:
        process.kill()


def test_missing_daemon_is_started_and_agents_get_tools(browser: Any, tmp_path: Path) -> None:
    env = {"PUNCHLIST_AUTOSTART": "1", "PUNCHLIST_DATA_DIR": str(tmp_path / "data")}
    # VS Code gets PATH from a login shell, without the venv, so the command must be where pipx and uv install it.
    installed = tmp_path / "editor/home/.local/bin/punch"
    installed.parent.mkdir(parents=True)
    installed.symlink_to(Path(sys.executable).with_name("punch"))
    with Editor(browser, str(tmp_path / "run/daemon.sock"), tmp_path / "editor", env=env, agents=True) as editor:
        window = editor.window()
        window.until("punchlist.connection.connected")
        window.open("website")
        window.run("add", "One")
        window.shows(["pending #1 One"])
        window.js("void vscode.commands.executeCommand('workbench.mcp.listServer')")
        window.page.locator(".quick-input-list .monaco-list-row", has_text="punchlist").wait_for()
        window.page.keyboard.press("Escape")
        window.js("await punchlist.connection.call('daemon.shutdown')")


def test_picture_shows_list_presence_and_details(
    daemon: Running, window: Window, client: Client, project: Path
) -> None:
    plan = client.conversation("handbook")
    for title in ("Agree on the grammar", "Write the parser", "Print it"):
        plan.add(title)
    plan.add("Its tests", parent="2", blocked_by=["1"])
    plan.add("Fix src/a.py:2", parent="2", priority="high")
    plan.start("1")
    plan.complete("1", "as in the draft of May")
    plan.take("claude-code/7f3c1a")
    plan.start("3")
    plan.fail("3", "no paper")
    plan.edit("2", description="Read src/a.py:2 first: what stands there decides how errors are told.")
    window.open("handbook")
    window.sees("no paper")
    window.run("details", "2")
    window.until("vscode.window.activeTextEditor?.document.getText().includes('what stands there')")
    window.page.locator(".view-line", has_text="what stands there decides").wait_for()
    window.js("await vscode.commands.executeCommand('notifications.clearAll')")
    with connect(socket=daemon.socket, autostart=False, name="claude-code") as agent:
        with agent.conversation("handbook").watch():
            window.page.get_by_text("handbook · with claude-code").first.wait_for()
            if "PICTURES" in os.environ:
                window.page.screenshot(path=PICTURES / "vscode.png")
    window.js("await vscode.commands.executeCommand('workbench.action.closeAllEditors')")
