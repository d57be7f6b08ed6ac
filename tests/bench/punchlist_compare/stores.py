"""Functions that give a peer its N tasks, in its own file format where adding them one by one would take minutes."""

import json
import uuid

from punchlist_compare.place import TITLE, Place

CREATED = "2026-11-01T09:00:00.000Z"


def fill_punch(place: Place) -> None:
    (place.home / "plan.md").write_text("".join(f"- [ ] {title}\n" for title in _titles(place)))
    if place.size:
        place.run(place.fill_words("import plan.md"))
    else:
        place.run(place.fill_words("list"))


def fill_taskwarrior(place: Place) -> None:
    (place.home / "taskrc").write_text(
        f"data.location={place.home}/tasks\nconfirmation=off\nverbose=new-uuid\nhooks.location={place.home}\n"
    )
    (place.home / "tasks").mkdir()
    tasks = [
        {"uuid": str(uuid.uuid4()), "status": "pending", "entry": "20261101T090000Z", "description": title}
        for title in _titles(place)
    ]
    place.run(place.fill_words("import -"), text=json.dumps(tasks))


def fill_todo_txt(place: Place) -> None:
    (place.home / "config").write_text(
        f'export TODO_DIR="{place.home}"\nexport TODO_FILE="$TODO_DIR/todo.txt"\n'
        'export DONE_FILE="$TODO_DIR/done.txt"\nexport REPORT_FILE="$TODO_DIR/report.txt"\n'
    )
    (place.home / "todo.txt").write_text("".join(f"{title}\n" for title in _titles(place)))


def fill_backlog(place: Place) -> None:
    place.run(place.fill_words("init compare --defaults --agent-instructions none"))
    for number, title in enumerate(_titles(place), 1):
        head = (
            f"id: TASK-{number}\ntitle: {title}\nstatus: To Do\nassignee: []\ncreated_date: '2026-11-01 09:00'\n"
            f"labels: []\ndependencies: []\nordinal: {number * 1000}\n"
        )
        name = f"task-{number} - {title.replace(' ', '-')}.md"
        (place.home / "backlog/tasks" / name).write_text(f"---\n{head}---\n\n")
    place.run(["git", "add", "backlog"])
    place.run(["git", "commit", "--quiet", "--message", "Plan"])


def fill_task_master(place: Place) -> None:
    tasks: list[dict[str, object]] = [
        {
            "id": number,
            "title": title,
            "description": title,
            "details": "",
            "testStrategy": "",
            "status": "pending",
            "dependencies": [],
            "priority": "medium",
            "subtasks": [],
        }
        for number, title in enumerate(_titles(place), 1)
    ]
    folder = place.home / ".taskmaster/tasks"
    folder.mkdir(parents=True)
    metadata = {"created": CREATED, "updated": CREATED, "description": "compare"}
    (folder / "tasks.json").write_text(json.dumps({"master": {"tasks": tasks, "metadata": metadata}}, indent=2))


def fill_mcp_taskmanager(place: Place) -> None:
    tasks = [
        {
            "id": f"task-{number}",
            "title": title,
            "description": title,
            "done": False,
            "approved": False,
            "completedDetails": "",
        }
        for number, title in enumerate(_titles(place), 1)
    ]
    request = {"requestId": "req-1", "originalRequest": "p", "splitDetails": "p", "tasks": tasks, "completed": False}
    (place.home / "tasks.json").write_text(json.dumps({"requests": [request]}, indent=2))


def fill_shrimp(place: Place) -> None:
    tasks: list[dict[str, object]] = [
        {
            "id": str(uuid.uuid4()),
            "name": title,
            "description": title,
            "status": "pending",
            "dependencies": [],
            "createdAt": CREATED,
            "updatedAt": CREATED,
        }
        for title in _titles(place)
    ]
    # With an absolute DATA_DIR, the server adds a folder named after the client's root.
    for folder in (place.home / "data", place.home / "data" / place.home.name):
        folder.mkdir()
        (folder / "tasks.json").write_text(json.dumps({"tasks": tasks}, indent=2))


def fill_server_memory(place: Place) -> None:
    entities = [
        {"type": "entity", "name": title, "entityType": "task", "observations": ["pending"]} for title in _titles(place)
    ]
    (place.home / "memory.jsonl").write_text("\n".join(map(json.dumps, entities)))


def fill_nothing(_place: Place) -> None:
    """Leave the store of a peer whose tasks can't be changed here."""


def _titles(place: Place) -> list[str]:
    return [TITLE.format(number) for number in range(1, place.size + 1)]
