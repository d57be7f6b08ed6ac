"""Errors of spaces on PostgreSQL, as a table of kinds. Each kind has a message that says what to do."""

from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from punchlistd.replication.adapters.link_refusals import ADD, COMMON, Refusal, Row, map_network_error
from punchlistd.replication.port import SharedLogError

_postgres = cast(Any, asyncpg)

FLOOR = 13
"""Minimum major version of the server. In older versions a notification wakes up all sessions, not only listeners."""

_MAKE = "run the SQL that punch space server {space} --postgres DATABASE writes, as the database's owner"

_TABLE: dict[str, Row] = {
    **COMMON,
    "server_too_old": Row(
        True, "{where} runs PostgreSQL {version}; a space needs {floor} or newer. Update the server."
    ),
    "no_tls": Row(
        True, "{where} offers no TLS, and nothing was sent to it. Put `ssl = on` and a certificate into its settings."
    ),
    "tls_needed": Row(
        True,
        "pg_hba.conf at {where} does not allow these creds without TLS, and TLS on this machine needs --ca. Name the"
        " authority of the server's certificate: " + ADD + " … --ca FILE; or add a `host` line.",
    ),
    "unauthorized": Row(
        True,
        "{where} does not accept these creds, or no longer does, or its pg_hba.conf has no line for them. Ask the"
        " space's keeper.",
    ),
    "creds_malformed": Row(
        True,
        "{creds} has no line with a password for {user} at {host}. Write HOST:PORT:DATABASE:USER:PASSWORD into it, or"
        " ask the space's keeper for the file.",
    ),
    "no_database": Row(
        True, "The database in {where} does not exist. Check the address, or create the database: createdb."
    ),
    "no_space": Row(
        True, "The space {space} does not exist at {where}, or no longer does. To create it, " + _MAKE + "."
    ),
    "name_taken": Row(
        True,
        'The table "punch-{space}".post at {where} does not belong to a space: {cause}. Choose another name, or create'
        " the table again: " + _MAKE + ".",
    ),
    "standby": Row(
        False,
        "{where} is a standby, or is being restored: it accepts no changes. Name the primary's address, in addition to"
        " this one if they can switch roles.",
    ),
    "read_only": Row(
        True,
        "{where} only allows this user to read (default_transaction_read_only is on). Turn it off for the user or the"
        " database: ALTER ROLE {user} SET default_transaction_read_only = off.",
    ),
    "default_fsync": Row(
        True,
        "{where} acknowledges before it writes to its disk (fsync is off): a power cut would lose acknowledged"
        " changes, and the database. Put `fsync = on` into its settings.",
    ),
    "no_push": Row(
        True,
        "{where} does not deliver notifications; perhaps it is a pooler. Name the server itself, or configure the"
        " pooler for session pooling.",
    ),
    "too_many_connections": Row(
        False,
        "{where} has no connections left; a machine needs three. Raise its max_connections or the user's limit, or end"
        " other connections.",
    ),
    "no_quorum": Row(
        False,
        "{where} responds, but can't store changes now ({cause}). Free disk space there, or start the standby that it"
        " waits for.",
    ),
    "nats_only": Row(
        True,
        "{option} is only for spaces on NATS: leave it out. PostgreSQL has its own settings for durability and"
        " replication.",
    ),
}


class Refused(Refusal):
    """A space on PostgreSQL can't be used now."""

    rows = _TABLE


_NO_LINE = "28000"
"""The server's error code if pg_hba.conf has no line for a connection. The error message names that file."""

_STATES = {
    "28P01": "unauthorized",
    _NO_LINE: "unauthorized",
    "3D000": "no_database",
    "42501": "no_permission",
    "53300": "too_many_connections",
}
"""The server's error code for a rejected connection → kind."""


def map_error(error: BaseException, where: str, host: str, space: str, *, encrypted: bool) -> Refused:
    if not encrypted and getattr(error, "sqlstate", "") == _NO_LINE and "pg_hba.conf" in str(error):
        return Refused("tls_needed", where=where)
    if isinstance(error, Refused):
        return error
    facts = {"where": where, "host": host, "space": space}
    if isinstance(error, OSError) and "rejected SSL upgrade" in str(error):
        return Refused("no_tls", **facts)
    if (refused := map_network_error(error, Refused, facts)) is not None:
        return refused
    if isinstance(error, _postgres.PostgresConnectionError | SharedLogError):
        return Refused("unreachable", cause="the connection was lost", **facts)
    if isinstance(error, _postgres.PostgresError):
        kind = _STATES.get(getattr(error, "sqlstate", "") or "", "refused")
        return Refused(kind, cause=str(error).partition("\n")[0] or "no reason given", **facts)
    return Refused("unreachable", cause="the server at this address is not a PostgreSQL server", **facts)
