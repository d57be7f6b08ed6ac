"""Why a space on NATS can't be used: one table of kinds, each with a sentence that says what to do.

The library's own texts never reach people: whatever it raises becomes a row of this table.
"""

import ssl
from collections.abc import Callable
from typing import Any, NamedTuple

from nats import errors

FLOOR = (2, 14)
"""The oldest server that is let in: older ones accept two posts for one place, or lose votes of their elections."""

SKEW_S = 30.0
"""How far the clocks of this machine and of a server may be apart before a person is told, in seconds."""

_ADD = "punch space add"


class _Row(NamedTuple):
    final: bool
    """Whether nothing changes before somebody acts."""
    text: str


_TABLE: dict[str, _Row] = {
    "unreachable": _Row(
        False, "No server answers at {where} ({cause}). Check the address, the network and the server."
    ),
    "no_quorum": _Row(
        False,
        "{where} answers, but the space's servers store nothing now: too few of them are up, or a disk is full. Start"
        " the others; or make room, and restart the server.",
    ),
    "server_too_old": _Row(
        True,
        "{where} runs NATS {version}; a space needs 2.14 or newer, since older ones can accept two changes for one"
        " place. Update the server.",
    ),
    "no_tls": _Row(
        True,
        "{where} offers no TLS, and nothing was sent to it. Give the server a certificate (punch space server writes"
        " such a configuration).",
    ),
    "bad_certificate": _Row(
        True,
        "No authority that this machine trusts has signed the certificate of {where}. If the space has an authority of"
        " its own, name its certificate: " + _ADD + " … --ca FILE.",
    ),
    "wrong_host": _Row(
        True,
        "The certificate of {where} is for another host than {host}. Use the name that stands in the certificate, or"
        " have one made for {host}.",
    ),
    "certificate_expired": _Row(
        True, "The certificate of {where} has expired, or this machine's clock is wrong. Have it renewed."
    ),
    "certificate_not_yet_valid": _Row(
        True, "The certificate of {where} is not valid yet: this machine's clock, or the server's, is wrong. Set it."
    ),
    "tls_failed": _Row(True, "{where} and this machine agree on no TLS ({cause}). Check what answers at this port."),
    "client_certificate": _Row(
        True,
        "{where} asks for a certificate of this machine; a space knows its members by creds. Leave `verify` out of the"
        " server's configuration.",
    ),
    "bad_ca": _Row(True, "{ca} holds no certificates in PEM form, or can't be read. Name another file with --ca."),
    "creds_missing": _Row(
        True, "{creds} can't be read ({cause}). Name the space's creds file: " + _ADD + " … --creds FILE."
    ),
    "creds_open": _Row(True, "Others than you may read {creds}. Close it: chmod 600 {creds}"),
    "creds_malformed": _Row(
        True, "{creds} is no creds file of NATS: it has no user's seed. Ask the space's keeper for it."
    ),
    "creds_expired": _Row(True, "{creds} expired on {when}. Ask the space's keeper for new ones."),
    "creds_needed": _Row(True, "{where} lets nobody in without creds. Name them: " + _ADD + " … --creds FILE."),
    "unauthorized": _Row(
        True, "{where} does not know these creds, or knows them no more. Ask the space's keeper for new ones."
    ),
    "no_permission": _Row(
        True,
        "These creds may not read the space {space} at {where}. Ask its keeper for permission, or name another space.",
    ),
    "no_jetstream": _Row(
        True,
        "{where} stores nothing: its JetStream is off. Put `jetstream {{ sync_interval: always }}` into its"
        " configuration.",
    ),
    "no_stream": _Row(
        True,
        "The space {space} is not at {where} (any more). Its lists can be read here. Restore it from the server's"
        " backup; or put each list back from the machine that has most of it: punch share LIST --repair",
    ),
    "name_taken": _Row(
        True, "At {where} the stream {stream} is there and is not a space's: {cause}. Choose another name."
    ),
    "stream_changed": _Row(
        True,
        "The settings of the space {space} at {where} were changed, so that it may lose posts: {cause}. Set the stream"
        " {stream} back.",
    ),
    "may_not_make": _Row(
        True,
        "The space {space} is not at {where} yet, and these creds may not make it. Add it with a member's creds first.",
    ),
    "too_few_servers": _Row(
        True, "{where} can't hold each post on {replicas} servers. Start the cluster's others, or say --replicas 1."
    ),
    "default_fsync": _Row(
        True,
        "{where} acknowledges before it writes to its disk: a power cut would lose changes that were acknowledged. Put"
        " `sync_interval: always` into its jetstream block.",
    ),
    "bad_monitor": _Row(True, "The monitor {where} does not answer as one of NATS ({cause}). Check --monitor."),
    "clock_skew": _Row(
        True, "The clocks of this machine and of {where} are {skew} s apart. Set them by NTP, then try again."
    ),
    "replaced": _Row(False, "The space at {where} is another one than a moment ago: it was made anew, or restored."),
    "refused": _Row(False, "{where} ended the connection ({cause}); it is tried again."),
}

KINDS = frozenset(_TABLE)


class Refused(Exception):
    """A space can't be used now.

    Attributes:
        kind: A key of the table.
        final: Whether nothing changes before somebody acts.
    """

    def __init__(self, kind: str, **facts: object) -> None:
        row = _TABLE[kind]
        super().__init__(row.text.format(**facts))
        self.kind = kind
        self.final = row.final


class NotEncrypted(errors.Error):
    """The server offers no TLS where it was asked for."""


_CERTIFICATE = {
    9: "certificate_not_yet_valid",
    10: "certificate_expired",
    62: "wrong_host",
    64: "wrong_host",
}
"""OpenSSL's number of why a certificate does not hold → our kind."""


def refusal(error: BaseException, where: str, host: str) -> Refused:
    """What an attempt to connect ended with, as a row of the table."""
    facts = {"where": where, "host": host}
    return next(row(error, facts) for kind, row in _REFUSALS if isinstance(error, kind))


def _tls_failed(error: ssl.SSLError, facts: dict[str, str]) -> Refused:
    reason = str(error.reason or "no answer").lower().replace("_", " ")
    kind = "client_certificate" if "certificate required" in reason else "tls_failed"
    return Refused(kind, cause=reason, **facts)


def _by_its_text(error: Exception, facts: dict[str, str]) -> Refused:
    text = str(error).lower()
    if "authorization violation" in text:
        return Refused("unauthorized", **facts)
    if "expecting info" in text or "json parse" in text:
        return Refused("unreachable", cause="what answers there is no NATS server", **facts)
    return Refused("refused", cause=text.removeprefix("nats: ").strip("'") or "no reason given", **facts)


_REFUSALS: tuple[tuple[Any, Callable[[Any, dict[str, str]], Refused]], ...] = (
    (Refused, lambda error, facts: error),
    (NotEncrypted, lambda error, facts: Refused("no_tls", **facts)),
    (
        ssl.SSLCertVerificationError,
        lambda error, facts: Refused(_CERTIFICATE.get(error.verify_code, "bad_certificate"), **facts),
    ),
    (ssl.SSLError, _tls_failed),
    (
        (TimeoutError, errors.TimeoutError),
        lambda error, facts: Refused("unreachable", cause="no answer in time", **facts),
    ),
    (OSError, lambda error, facts: Refused("unreachable", cause=_in_words(error), **facts)),
    (Exception, _by_its_text),
)
"""The first class that fits decides."""


def _in_words(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, ConnectionError):
        return "the connection was cut"
    if type(error).__name__ == "gaierror":
        return "the host's name is not known"
    return (error.strerror or "the network failed").lower().split("]")[-1].strip()
