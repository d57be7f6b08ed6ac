"""Errors of spaces on NATS, as a table of kinds. Each kind has a message that says what to do."""

import ssl

from nats import errors

from punchlistd.replication.adapters.link_refusals import COMMON, Refusal, Row, describe_tls_error, map_network_error
from punchlistd.replication.port import Garbled

FLOOR = (2, 14)
"""Minimum version of the server. Older versions can accept two posts for one position, or lose election votes."""

_TABLE: dict[str, Row] = {
    **COMMON,
    "no_quorum": Row(
        False,
        "{where} responds, but the space's servers can't store changes now: too few of them are up, or a disk is full."
        " Start the others; or free disk space, and restart the server.",
    ),
    "server_too_old": Row(
        True,
        "{where} runs NATS {version}; a space needs 2.14 or newer, since older ones can accept two changes for one"
        " position. Update the server.",
    ),
    "no_tls": Row(
        True,
        "{where} offers no TLS, and nothing was sent to it. Give the server a certificate (punch space server writes"
        " such a configuration).",
    ),
    "client_certificate": Row(
        True,
        "{where} requires a client certificate, but spaces authenticate members by creds. Remove `verify` from the"
        " server's configuration.",
    ),
    "creds_malformed": Row(
        True, "{creds} is not a creds file of NATS: it has no user seed. Ask the space's keeper for the right file."
    ),
    "creds_expired": Row(True, "{creds} expired on {when}. Ask the space's keeper for new ones."),
    "no_jetstream": Row(
        True,
        "{where} can't store changes: JetStream is off. Put `jetstream {{ sync_interval: always }}` into its"
        " configuration.",
    ),
    "no_stream": Row(
        True,
        "The space {space} does not exist at {where}, or no longer does. Its lists can be read here. Restore it from"
        " the server's backup; or restore each list from its most current machine: punch share LIST --repair",
    ),
    "name_taken": Row(True, "The stream {stream} at {where} does not belong to a space: {cause}. Choose another name."),
    "stream_changed": Row(
        True,
        "The settings of the space {space} at {where} were changed, and it may lose posts: {cause}. Restore the"
        " settings of the stream {stream}.",
    ),
    "may_not_make": Row(
        True,
        "The space {space} does not exist at {where} yet, and these creds can't create it. Add it with a member's creds"
        " first.",
    ),
    "too_few_servers": Row(
        True, "{where} can't store posts on {replicas} servers. Start the cluster's other servers, or use --replicas 1."
    ),
    "default_fsync": Row(
        True,
        "{where} acknowledges before it writes to its disk: a power cut would lose acknowledged changes. Put"
        " `sync_interval: always` into its jetstream block.",
    ),
    "bad_monitor": Row(True, "The server at {where} is not a monitor of NATS ({cause}). Check --monitor."),
}

KINDS = frozenset(_TABLE)


class Refused(Refusal):
    """A space on NATS can't be used now."""

    rows = _TABLE


class NotEncrypted(errors.Error):
    """TLS is required, but the server doesn't offer it."""


def map_error(error: BaseException, where: str, host: str) -> Refused:
    if isinstance(error, Refused):
        return error
    facts = {"where": where, "host": host}
    if isinstance(error, NotEncrypted):
        return Refused("no_tls", **facts)
    if isinstance(error, ssl.SSLError) and "certificate required" in (reason := describe_tls_error(error)):
        return Refused("client_certificate", cause=reason, **facts)
    if isinstance(error, Garbled):
        return Refused("unreachable", cause=str(error), **facts)
    if (refused := map_network_error(error, Refused, facts)) is not None:
        return refused
    text = str(error).lower()
    if "authorization violation" in text:
        return Refused("unauthorized", **facts)
    if "expecting info" in text or "json parse" in text:
        return Refused("unreachable", cause="the server at this address is not a NATS server", **facts)
    return Refused("refused", cause=text.removeprefix("nats: ").strip("'") or "no reason given", **facts)
