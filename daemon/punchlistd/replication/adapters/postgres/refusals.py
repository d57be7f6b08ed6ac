"""Why a space on PostgreSQL can't be used: one table of kinds, each with a sentence that says what to do."""

from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from punchlistd.replication.adapters.link_refusals import ADD, COMMON, Refusal, Row, refusal_of_network
from punchlistd.replication.port import SharedLogError

_postgres = cast(Any, asyncpg)

FLOOR = 13
"""The oldest server that is let in: from here on a notification wakes only those who listen."""

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
        "No line of pg_hba.conf at {where} lets these creds in without TLS, and on this machine TLS needs --ca."
        " Name the authority of the server's certificate: " + ADD + " … --ca FILE; or add a `host` line.",
    ),
    "unauthorized": Row(
        True,
        "{where} does not know these creds, or knows them no more, or its pg_hba.conf has no line for them. Ask the"
        " space's keeper.",
    ),
    "creds_malformed": Row(
        True,
        "{creds} has no line with a password for {user} at {host}. Write HOST:PORT:DATABASE:USER:PASSWORD into it, or"
        " ask the space's keeper for the file.",
    ),
    "no_database": Row(True, "{where} has no database of this name. Check the address, or make it there: createdb."),
    "no_space": Row(True, "The space {space} is not at {where} (any more). To make it, " + _MAKE + "."),
    "name_taken": Row(
        True,
        'At {where} the table "punch-{space}".post is not a space\'s: {cause}. Choose another name, or make it anew: '
        + _MAKE
        + ".",
    ),
    "standby": Row(
        False,
        "{where} is a standby, or one that is being restored: it takes no changes. Name the primary's address, beside"
        " this one if they change places.",
    ),
    "read_only": Row(
        True,
        "{where} lets this user read only (default_transaction_read_only is on). Set it off for the user or the"
        " database: ALTER ROLE {user} SET default_transaction_read_only = off.",
    ),
    "default_fsync": Row(
        True,
        "{where} acknowledges before it writes to its disk (fsync is off): a power cut would lose changes that were"
        " acknowledged, and the database. Put `fsync = on` into its settings.",
    ),
    "no_push": Row(
        True,
        "{where} passes no notifications on: what answers there is a pooler, perhaps. Name the server itself, or let"
        " the pooler hold a connection for a whole session.",
    ),
    "too_many_connections": Row(
        False,
        "{where} has no connection left; a machine needs three. Raise its max_connections or the user's limit, or end"
        " what holds them.",
    ),
    "no_quorum": Row(
        False,
        "{where} answers, but stores nothing now ({cause}). Make room on its disk, or start the standby that it waits"
        " for.",
    ),
    "nats_only": Row(
        True, "{option} is for spaces on NATS: leave it out. PostgreSQL tells itself how it writes, and to whom."
    ),
}


class Refused(Refusal):
    """A space on PostgreSQL can't be used now."""

    rows = _TABLE


_NO_LINE = "28000"
"""The server's code of a connection that no line of its pg_hba.conf is for; its text names that file."""

_STATES = {
    "28P01": "unauthorized",
    _NO_LINE: "unauthorized",
    "3D000": "no_database",
    "42501": "no_permission",
    "53300": "too_many_connections",
}
"""The server's code of why it lets nobody in → our kind."""


def refusal(error: BaseException, where: str, host: str, space: str, *, encrypted: bool) -> Refused:
    if not encrypted and getattr(error, "sqlstate", "") == _NO_LINE and "pg_hba.conf" in str(error):
        return Refused("tls_needed", where=where)
    if isinstance(error, Refused):
        return error
    facts = {"where": where, "host": host, "space": space}
    if isinstance(error, OSError) and "rejected SSL upgrade" in str(error):
        return Refused("no_tls", **facts)
    if (refused := refusal_of_network(error, Refused, facts)) is not None:
        return refused
    if isinstance(error, _postgres.PostgresConnectionError | SharedLogError):
        return Refused("unreachable", cause="the connection was cut", **facts)
    if isinstance(error, _postgres.PostgresError):
        kind = _STATES.get(getattr(error, "sqlstate", "") or "", "refused")
        return Refused(kind, cause=str(error).partition("\n")[0] or "no reason given", **facts)
    return Refused("unreachable", cause="what answers there is no PostgreSQL server", **facts)
