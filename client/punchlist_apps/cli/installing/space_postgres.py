"""The SQL that makes a space in a PostgreSQL database, with the least that each member needs, and members' creds."""

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from punchlist_apps.cli.installing.space_server import HOSTS_COMMENT

ITERATIONS = 4096

_PRIVILEGES = {"member": "SELECT, INSERT", "reader": "SELECT", "keeper": "SELECT, INSERT, DELETE"}
"""Role → what it may do with posts. Nobody changes one."""


class Login(NamedTuple):
    """Somebody who is let in, by a password."""

    name: str
    role: str
    password: str

    def format_creds(self, hosts: list[str], database: str) -> str:
        """The text of the creds file, which has the form of PostgreSQL's `.pgpass`."""
        lines = (f"{_escape(host)}:*:{_escape(database)}:{self.name}:{self.password}" for host in hosts)
        about = f"# {self.name}, {self.role} of a space of punchlist. Whoever has this file is let in: keep it secret."
        return "\n".join([about, *lines, ""])


def create_login(name: str, role: str) -> Login:
    """A member with a new password."""
    return Login(name, role, base64.b32encode(os.urandom(25)).decode().lower())


def build_sql(space: str, logins: list[Login], hosts: Sequence[str] = (), database: str = "DATABASE") -> str:
    """Return the SQL that the database's owner runs, as often as it changes.

    It has no password, only what proves one.
    """
    schema = f'"punch-{space}"'
    lines = [
        f"-- The space {space} of punchlist. As a user who may make roles, and owns the database:",
        f"--   psql --dbname {database} --file postgres.sql",
        "-- Running it again is harmless. It stops at the first error, as where a role of another program has a",
        "-- member's name, and then nothing was changed.",
        *((f"-- {HOSTS_COMMENT}: {' '.join(hosts)}",) if hosts else ()),
        r"\set ON_ERROR_STOP on",
        "BEGIN;",
        f"CREATE SCHEMA IF NOT EXISTS {schema};",
        f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC;",
        f"CREATE TABLE IF NOT EXISTS {schema}.post (",
        '  list text COLLATE "C" NOT NULL,',
        "  n bigint NOT NULL,",
        "  nonce text NOT NULL,",
        "  body bytea NOT NULL,",
        "  PRIMARY KEY (list, n)",
        ");",
        f"REVOKE ALL ON {schema}.post FROM PUBLIC;",
        "COMMIT;",
        "",
    ]
    return edit("\n".join(lines), space, logins)


_ROLE = "|".join((*_PRIVILEGES, "removed"))
_MEMBER = re.compile(
    rf"^-- (?P<name>[\w-]+), (?P<role>{_ROLE})\n.*?(?=^-- [\w-]+, (?:{_ROLE})$|^COMMIT;)",
    re.MULTILINE | re.DOTALL,
)


def find_roles(text: str, space: str) -> dict[str, str]:
    """Return the members of a space in the text of its SQL, with their roles."""
    if f'CREATE SCHEMA IF NOT EXISTS "punch-{space}";' not in text or "\nCOMMIT;" not in text:
        raise ValueError(f"no schema punch-{space}")
    return {one["name"]: one["role"] for one in _MEMBER.finditer(text) if one["role"] != "removed"}


def edit(text: str, space: str, logins: Sequence[Login], without: Collection[str] = ()) -> str:
    """Return the SQL with further members, and with the removal of some; everything else stays as it is.

    The lines of a member that stop when they are run twice, as earlier versions wrote them, are written again.
    """
    added = {one.name for one in logins}

    def edited(found: re.Match[str]) -> str:
        name, role = found["name"], found["role"]
        if name in added:
            return ""
        if name in without:
            return _build_removal(space, name)
        proof = re.search(r"^CREATE ROLE .* PASSWORD '([^']+)'", found[0], re.MULTILINE)
        return found[0] if proof is None else _build_grants(space, name, role, proof[1])

    text = _MEMBER.sub(edited, text)
    before, commit, after = text.rpartition("COMMIT;")
    return "".join(
        [
            before,
            *(_build_grants(space, one.name, one.role, build_verifier(one.password)) for one in logins),
            commit,
            after,
        ]
    )


def _membership_condition(space: str, name: str) -> str:
    """Return the condition that a role was let into the space, and is not its owner."""
    return (
        "EXISTS (SELECT FROM pg_namespace s, aclexplode(s.nspacl) a, pg_roles r"
        f" WHERE s.nspname = 'punch-{space}' AND r.rolname = '{name}' AND a.grantee = r.oid AND s.nspowner <> r.oid)"
    )


def _build_grants(space: str, name: str, role: str, proof: str) -> str:
    schema = f'"punch-{space}"'
    return f"""-- {name}, {role}
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') THEN
    CREATE ROLE "{name}";
  ELSIF NOT {_membership_condition(space, name)} THEN
    RAISE EXCEPTION 'The role {name} is there and is not of the space {space}: give the member another name.';
  END IF;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO "{name}"', current_database());
END $$;
ALTER ROLE "{name}" LOGIN PASSWORD '{proof}';
GRANT USAGE ON SCHEMA {schema} TO "{name}";
REVOKE ALL ON {schema}.post FROM "{name}";
GRANT {_PRIVILEGES[role]} ON {schema}.post TO "{name}";
"""


def _build_removal(space: str, name: str) -> str:
    schema = f'"punch-{space}"'
    return f"""-- {name}, removed
DO $$ BEGIN
  IF {_membership_condition(space, name)} THEN
    REVOKE ALL ON {schema}.post FROM "{name}";
    REVOKE ALL ON SCHEMA {schema} FROM "{name}";
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM "{name}"', current_database());
    BEGIN
      PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}';
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE WARNING 'Open connections of {name} stay, without any rights in the space: pg_signal_backend ends them.';
    END;
    DROP ROLE "{name}";
  END IF;
END $$;
"""


def build_verifier(password: str) -> str:
    """What a server keeps of a password (RFC 5803): who reads it can't log in with it."""
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    in_text = (base64.b64encode(each).decode() for each in (salt, stored, server))
    return "SCRAM-SHA-256${}:{}${}:{}".format(ITERATIONS, *in_text)


def _escape(field: str) -> str:
    return field.replace("\\", "\\\\").replace(":", "\\:")
