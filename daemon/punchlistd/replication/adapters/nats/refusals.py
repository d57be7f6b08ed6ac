"""Why a space on NATS can't be used: one table of kinds, each with a sentence that says what to do.

The library's own texts never reach people: whatever it raises becomes a row of this table.
"""

import ssl

from nats import errors

from punchlistd.replication.adapters.link_refusals import COMMON, Refusal, Row, reason_of_tls, refusal_of_network
from punchlistd.replication.port import Garbled

FLOOR = (2, 14)
"""The oldest server that is let in: older ones accept two posts for one place, or lose votes of their elections."""

_TABLE: dict[str, Row] = {
    **COMMON,
    "no_quorum": Row(
        False,
        "{where} answers, but the space's servers store nothing now: too few of them are up, or a disk is full. Start"
        " the others; or make room, and restart the server.",
    ),
    "server_too_old": Row(
        True,
        "{where} runs NATS {version}; a space needs 2.14 or newer, since older ones can accept two changes for one"
        " place. Update the server.",
    ),
    "no_tls": Row(
        True,
        "{where} offers no TLS, and nothing was sent to it. Give the server a certificate (punch space server writes"
        " such a configuration).",
    ),
    "client_certificate": Row(
        True,
        "{where} asks for a certificate of this machine; a space knows its members by creds. Leave `verify` out of the"
        " server's configuration.",
    ),
    "creds_malformed": Row(
        True, "{creds} is no creds file of NATS: it has no user's seed. Ask the space's keeper for it."
    ),
    "creds_expired": Row(True, "{creds} expired on {when}. Ask the space's keeper for new ones."),
    "no_jetstream": Row(
        True,
        "{where} stores nothing: its JetStream is off. Put `jetstream {{ sync_interval: always }}` into its"
        " configuration.",
    ),
    "no_stream": Row(
        True,
        "The space {space} is not at {where} (any more). Its lists can be read here. Restore it from the server's"
        " backup; or put each list back from the machine that has most of it: punch share LIST --repair",
    ),
    "name_taken": Row(
        True, "At {where} the stream {stream} is there and is not a space's: {cause}. Choose another name."
    ),
    "stream_changed": Row(
        True,
        "The settings of the space {space} at {where} were changed, so that it may lose posts: {cause}. Set the stream"
        " {stream} back.",
    ),
    "may_not_make": Row(
        True,
        "The space {space} is not at {where} yet, and these creds may not make it. Add it with a member's creds first.",
    ),
    "too_few_servers": Row(
        True, "{where} can't hold each post on {replicas} servers. Start the cluster's others, or say --replicas 1."
    ),
    "default_fsync": Row(
        True,
        "{where} acknowledges before it writes to its disk: a power cut would lose changes that were acknowledged. Put"
        " `sync_interval: always` into its jetstream block.",
    ),
    "bad_monitor": Row(True, "The monitor {where} does not answer as one of NATS ({cause}). Check --monitor."),
}

KINDS = frozenset(_TABLE)


class Refused(Refusal):
    """A space on NATS can't be used now."""

    rows = _TABLE


class NotEncrypted(errors.Error):
    """TLS is required, but the server doesn't offer it."""


def refusal(error: BaseException, where: str, host: str) -> Refused:
    if isinstance(error, Refused):
        return error
    facts = {"where": where, "host": host}
    if isinstance(error, NotEncrypted):
        return Refused("no_tls", **facts)
    if isinstance(error, ssl.SSLError) and "certificate required" in (reason := reason_of_tls(error)):
        return Refused("client_certificate", cause=reason, **facts)
    if isinstance(error, Garbled):
        return Refused("unreachable", cause=str(error), **facts)
    if (refused := refusal_of_network(error, Refused, facts)) is not None:
        return refused
    text = str(error).lower()
    if "authorization violation" in text:
        return Refused("unauthorized", **facts)
    if "expecting info" in text or "json parse" in text:
        return Refused("unreachable", cause="what answers there is no NATS server", **facts)
    return Refused("refused", cause=text.removeprefix("nats: ").strip("'") or "no reason given", **facts)
