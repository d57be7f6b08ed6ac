"""The commands that connect lists with models, agents' hosts, shells and other programs."""

from punchlist.cli.duration import milliseconds, port
from punchlist.cli.table.shape import Argument, Command, choice, flag, names, value

_HOSTS = (
    *("claude-code", "codex", "cursor", "vscode", "gemini", "copilot"),
    *("opencode", "zed", "windsurf", "cline", "amp"),
)

COMMANDS = (
    Command(
        "tools",
        "tools",
        "Print what a model needs to work on a list: tool definitions and prompts.",
        (
            Argument(
                ("dialect",), "native, claude, checklist, queue, todo or todo-v1", {"metavar": "DIALECT", "nargs": "?"}
            ),
            choice(
                "--format",
                text="for which API (mcp)",
                choices=("mcp", "openai", "responses", "anthropic", "python"),
                default="mcp",
            ),
            value("--tools", text="only these tools", metavar="NAME,NAME", type=names),
            flag("--prompt", text="the section for the model's prompt instead"),
        ),
        (
            "punch tools",
            "punch tools native --format anthropic",
            "punch tools queue --tools add_task,list_tasks,complete_task --prompt",
        ),
    ),
    Command(
        "mcp",
        "mcp",
        "Serve the tools to an agent's host over the Model Context Protocol.",
        (
            value("--dialect", text="which tools, repeatable (native)", metavar="DIALECT", action="append"),
            value("--tools", text="only these tools (all)", metavar="NAME,NAME", type=names),
            value("--user", text="only this user's lists (calls name users)", metavar="NAME"),
            flag("--http", text="over HTTP on this machine instead of standard input and output"),
            value("--port", text="for --http: the port (8321)", metavar="PORT", type=port, default=8321),
            Argument(
                ("--token-file",), "for --http: where the token is (made if missing)", {"metavar": "FILE"}, "file"
            ),
            Argument(
                ("--users",),
                "for --http: tokens and the users each may name (one token for all)",
                {"metavar": "FILE"},
                "file",
            ),
        ),
        ("punch mcp --dialect claude -c website", "punch mcp --http --port 8321"),
    ),
    Command(
        "completion",
        "shells",
        "Print the completion script of a shell.",
        (choice("shell", text="bash, zsh or fish", choices=("bash", "zsh", "fish")),),
        ("punch completion bash > ~/.local/share/bash-completion/completions/punch",),
    ),
    Command(
        "demo",
        "demo",
        "Watch a recorded session with a private daemon, and a kill -9 in the middle.",
        (flag("--fast", text="plain output, in seconds"),),
        ("punch demo", "punch demo --fast"),
    ),
    Command(
        "attach",
        "attach",
        "Let the id of a host's session or thread find this list.",
        (Argument(("session",), "the outside id", {"metavar": "SESSION"}),),
        ("punch attach 7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66 -c website",),
    ),
    Command(
        "detach",
        "attach",
        "Undo an attach.",
        (Argument(("session",), "the outside id", {"metavar": "SESSION"}),),
        ("punch detach 7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66",),
    ),
    Command(
        "init",
        "init",
        "Write the project file .punchlist.toml, which names this directory's list.",
        (
            Argument(("name",), "the list (the repository's own, or a fresh one)", {"metavar": "NAME", "nargs": "?"}),
            flag("--commit", text="commit the file, and nothing else, to the git repository"),
            flag("--trust", text="let the project file that came with a clone name its list"),
        ),
        ("punch init", "punch init --commit", "punch init website", "punch init --trust"),
    ),
    Command(
        "prime",
        "prime",
        "Print open tasks and what changed since a session last looked, for its model's context.",
        (
            value("--session", text="whose looks are remembered; an attached one's list is taken", metavar="ID"),
            flag("--hook", text="read a hook's event from standard input, never fail"),
        ),
        ("punch prime", "punch prime --session 7f3c2d10"),
    ),
    Command(
        "setup",
        "setup",
        "Add punchlist to an agent's host: its MCP server, and for Claude Code hooks.",
        (
            choice("host", text="which host", choices=_HOSTS),
            choice("--scope", text="this user, or this directory", choices=("user", "project"), default="user"),
            flag("--allow", text="claude-code: let the model call our tools without a question"),
            flag("--tasks", text="claude-code: take its own task lists over, one way in"),
            flag("--print", text="only show the difference"),
            flag("--remove", text="take it back"),
        ),
        ("punch setup claude-code", "punch setup vscode --scope project", "punch setup codex --remove"),
    ),
    Command(
        "mirror",
        "mirror",
        "Keep lists as JSON files, both ways, for programs that know nothing else.",
        (
            choice("action", text="add, list, remove or run", choices=("add", "list", "remove", "run")),
            Argument(("directory",), "where the files are", {"metavar": "DIRECTORY", "nargs": "?"}, "file"),
            flag("--all", text="all lists there are and will be"),
            choice("--format", text="one file for each list, or one for each task", choices=("checklist", "claude")),
            value("--idle", text="run: end when nothing changed for this long", metavar="TIME", type=milliseconds),
        ),
        ("punch mirror add . -c website", "punch mirror add ~/tasks --all", "punch mirror run", "punch mirror list"),
    ),
)
