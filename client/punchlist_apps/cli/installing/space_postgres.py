"""The SQL for a space in a PostgreSQL database, with minimal rights for each member, and the members' creds."""

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from punchlist_apps.cli.installing.space_server import HOSTS_COMMENT, format_creds_comment

ITERATIONS = 4096

_PRIVILEGES = {"member": "SELECT, INSERT", "reader": "SELECT", "keeper": "SELECT, INSERT, DELETE"}
"""Role → its privileges on posts. No role may update posts."""


class Login(NamedTuple):
    """A member and its password."""

    name: str
    role: str
    password: str

    def format_creds(self, hosts: list[str], database: str) -> str:
        """Return the text of the creds file, in the format of PostgreSQL's `.pgpass`."""
        lines = (f"{_escape(host)}:*:{_escape(database)}:{self.name}:{self.password}" for host in hosts)
        return "\n".join([format_creds_comment(self.name, self.role), *lines, ""])


def create_login(name: str, role: str) -> Login:
    """Return a login with a generated password."""
    return Login(name, role, base64.b32encode(os.urandom(25)).decode().lower())


def build_sql(space: str, logins: list[Login], hosts: Sequence[str] = (), database: str = "DATABASE") -> str:
    """Return the SQL that the database's owner must run, and run again after each change.

    The SQL contains no passwords, only password verifiers.
    """
    schema = f'"punch-{space}"'
    lines = [
        f"-- The space {space} of punchlist. Run it as a user who owns the database and may create roles:",
        f"--   psql --dbname {database} --file postgres.sql",
        "-- Running it again is safe. The first error rolls back everything, for example if another program's role has",
        "-- a member's name.",
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
    """Return the members of a space, with their roles, from the text of its SQL."""
    if f'CREATE SCHEMA IF NOT EXISTS "punch-{space}";' not in text or "\nCOMMIT;" not in text:
        raise ValueError(f"no schema punch-{space}")
    return {match["name"]: match["role"] for match in _MEMBER.finditer(text) if match["role"] != "removed"}


def edit(text: str, space: str, logins: Sequence[Login], without: Collection[str] = ()) -> str:
    """Return the SQL with some members added and others removed. The rest is unchanged.

    Earlier versions wrote statements that fail if they are run twice. Such statements are replaced.
    """
    added = {login.name for login in logins}

    def edit_member(match: re.Match[str]) -> str:
        name, role = match["name"], match["role"]
        if name in added:
            return ""
        if name in without:
            return _build_removal(space, name)
        old_password = re.search(r"^CREATE ROLE .* PASSWORD '([^']+)'", match[0], re.MULTILINE)
        return match[0] if old_password is None else _build_grants(space, name, role, old_password[1])

    text = _MEMBER.sub(edit_member, text)
    before, commit, after = text.rpartition("COMMIT;")
    grants = [_build_grants(space, login.name, login.role, build_verifier(login.password)) for login in logins]
    return "".join([before, *grants, commit, after])


def _build_membership_condition(space: str, name: str) -> str:
    """Return the SQL condition that tests whether a role has rights in the space and isn't its owner."""
    return (
        "EXISTS (SELECT FROM pg_namespace s, aclexplode(s.nspacl) a, pg_roles r"
        f" WHERE s.nspname = 'punch-{space}' AND r.rolname = '{name}' AND a.grantee = r.oid AND s.nspowner <> r.oid)"
    )


def _build_grants(space: str, name: str, role: str, verifier: str) -> str:
    schema = f'"punch-{space}"'
    return f"""-- {name}, {role}
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') THEN
    CREATE ROLE "{name}";
  ELSIF NOT {_build_membership_condition(space, name)} THEN
    RAISE EXCEPTION 'The role {name} exists but is not of the space {space}: choose another name for the member.';
  END IF;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO "{name}"', current_database());
END $$;
ALTER ROLE "{name}" LOGIN PASSWORD '{verifier}';
GRANT USAGE ON SCHEMA {schema} TO "{name}";
REVOKE ALL ON {schema}.post FROM "{name}";
GRANT {_PRIVILEGES[role]} ON {schema}.post TO "{name}";
"""


def _build_removal(space: str, name: str) -> str:
    schema = f'"punch-{space}"'
    return f"""-- {name}, removed
DO $$ BEGIN
  IF {_build_membership_condition(space, name)} THEN
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
    """Return the SCRAM verifier that a server stores for a password (RFC 5803).

    The verifier alone doesn't allow a login.
    """
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    encoded = (base64.b64encode(part).decode() for part in (salt, stored, server))
    return "SCRAM-SHA-256${}:{}${}:{}".format(ITERATIONS, *encoded)


def _escape(field: str) -> str:
    return field.replace("\\", "\\\\").replace(":", "\\:")
