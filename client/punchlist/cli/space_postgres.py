"""The SQL that makes a space in a PostgreSQL database, with the least that each member needs, and members' creds."""

import base64
import hashlib
import hmac
import os
from typing import NamedTuple

ITERATIONS = 4096

_MAY = {"member": "SELECT, INSERT", "reader": "SELECT", "keeper": "SELECT, INSERT, DELETE"}
"""Role → what it may do with posts. Nobody changes one."""


class Login(NamedTuple):
    """Somebody who is let in, by a password."""

    name: str
    role: str
    password: str

    def creds(self, hosts: list[str], database: str) -> str:
        """The text of the creds file, which has the form of PostgreSQL's `.pgpass`."""
        lines = (f"{_escaped(host)}:*:{_escaped(database)}:{self.name}:{self.password}" for host in hosts)
        about = f"# {self.name}, {self.role} of a space of punchlist. Whoever has this file is let in: keep it secret."
        return "\n".join([about, *lines, ""])


def login(name: str, role: str) -> Login:
    """A member with a new password."""
    return Login(name, role, base64.b32encode(os.urandom(25)).decode().lower())


def sql(space: str, logins: list[Login]) -> str:
    """What the database's owner runs once, and again with further members; it has no password, only what proves one."""
    schema = f'"punch-{space}"'
    lines = [
        f"-- The space {space} of punchlist. As a user who may make roles, and owns the database:",
        "--   psql --dbname DATABASE --file postgres.sql",
        "-- It stops at the first error, as where a role of this name is there, and then nothing was changed.",
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
    ]
    for one in logins:
        role = f'"{one.name}"'
        lines += [
            f"-- {one.name}, {one.role}",
            f"CREATE ROLE {role} LOGIN PASSWORD '{verifier(one.password)}';",
            f"DO $$ BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO {role}', current_database()); END $$;",
            f"GRANT USAGE ON SCHEMA {schema} TO {role};",
            f"GRANT {_MAY[one.role]} ON {schema}.post TO {role};",
        ]
    return "\n".join([*lines, "COMMIT;", ""])


def verifier(password: str) -> str:
    """What a server keeps of a password (RFC 5803): who reads it can't log in with it."""
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    in_text = (base64.b64encode(each).decode() for each in (salt, stored, server))
    return "SCRAM-SHA-256${}:{}${}:{}".format(ITERATIONS, *in_text)


def _escaped(field: str) -> str:
    return field.replace("\\", "\\\\").replace(":", "\\:")
