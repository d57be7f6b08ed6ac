"""Space errors that all engines share. Each kind has a message that says what to do.

Users never see messages from client libraries. Each exception of a library is mapped to a row in a table.
"""

import os
import ssl
import stat
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

ADD = "punch space add"

SKEW_S = 30.0
"""Maximum difference between the clocks of this machine and a server, in seconds."""


class Row(NamedTuple):
    """Properties of a kind of error.

    Attributes:
        final: Whether retrying is useless until a user intervenes.
        text: Template of the message.
    """

    final: bool
    text: str


COMMON: dict[str, Row] = {
    "unreachable": Row(False, "No server answers at {where} ({cause}). Check the address, the network and the server."),
    "bad_certificate": Row(
        True,
        "The certificate of {where} is not signed by an authority that this machine trusts. If the space has its own"
        " authority, name its certificate: " + ADD + " … --ca FILE.",
    ),
    "wrong_host": Row(
        True,
        "The certificate of {where} is not valid for {host}. Use the name in the certificate, or get one for {host}.",
    ),
    "certificate_expired": Row(
        True, "The certificate of {where} has expired, or this machine's clock is wrong. Renew it, or set the clock."
    ),
    "certificate_not_yet_valid": Row(
        True,
        "The certificate of {where} is not valid yet: this machine's clock, or the server's, is wrong. Set the clock.",
    ),
    "tls_failed": Row(True, "The TLS handshake with {where} failed ({cause}). Check which program uses this port."),
    "bad_ca": Row(True, "{ca} has no certificates in PEM format, or can't be read. Name another file with --ca."),
    "creds_missing": Row(
        True, "{creds} can't be read ({cause}). Name the space's creds file: " + ADD + " … --creds FILE."
    ),
    "creds_open": Row(True, "Other users can read {creds}. Make it private: chmod 600 {creds}"),
    "creds_needed": Row(True, "{where} requires creds. Name the file: " + ADD + " … --creds FILE."),
    "unauthorized": Row(
        True, "{where} does not accept these creds, or no longer does. Ask the space's keeper for new ones."
    ),
    "no_permission": Row(
        True,
        "These creds may not read the space {space} at {where}. Ask its keeper for permission, or name another space.",
    ),
    "clock_skew": Row(
        True, "The clocks of this machine and of {where} are {skew} s apart. Set them by NTP, then try again."
    ),
    "replaced": Row(False, "The space at {where} was replaced: it was created again, or restored."),
    "refused": Row(False, "{where} ended the connection ({cause}). The daemon reconnects automatically."),
}


class Refusal(Exception):
    """A space can't be used now. Each engine has its own table of kinds.

    Attributes:
        kind: A key of the table.
        final: Whether retrying is useless until a user intervenes.
    """

    rows: ClassVar[Mapping[str, Row]] = COMMON

    def __init__(self, kind: str, **facts: object) -> None:
        row = self.rows[kind]
        super().__init__(row.text.format(**facts))
        self.kind = kind
        self.final = row.final


def check_clock(refused: type[Refusal], where: str, skew_s: float) -> None:
    """Compare the clocks of this machine and a server.

    Raises:
        Refusal: The clocks are too far apart.
    """
    if abs(skew_s) > SKEW_S:
        raise refused("clock_skew", where=where, skew=round(abs(skew_s)))


R = TypeVar("R", bound=Refusal)

MAX_CREDS_BYTES = 64 << 10
"""Maximum size of a creds file, in bytes."""


def read_private(path: str, refused: type[Refusal]) -> str:
    """Return the text of a creds file.

    Raises:
        Refusal: The file can't be read, or other users can read it.
    """
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(MAX_CREDS_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise refused("creds_missing", creds=path, cause=(error.strerror or "it failed").lower()) from error
    if stat.S_ISREG(mode) and mode & 0o077:
        raise refused("creds_open", creds=path)
    return text


_CERTIFICATE = {
    9: "certificate_not_yet_valid",
    10: "certificate_expired",
    62: "wrong_host",
    64: "wrong_host",
}
"""OpenSSL's error code for a certificate → kind."""


def map_network_error(error: BaseException, refused: type[R], facts: Mapping[str, str]) -> R | None:
    """Return the error for a failed connection attempt, or None if the cause wasn't TLS, a timeout or the network."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return refused(_CERTIFICATE.get(error.verify_code, "bad_certificate"), **facts)
    if isinstance(error, ssl.SSLError):
        return refused("tls_failed", cause=describe_tls_error(error), **facts)
    if isinstance(error, TimeoutError):
        return refused("unreachable", cause="timed out", **facts)
    return refused("unreachable", cause=_describe_os_error(error), **facts) if isinstance(error, OSError) else None


def describe_tls_error(error: ssl.SSLError) -> str:
    return str(error.reason or "no reason given").lower().replace("_", " ")


def _describe_os_error(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, ConnectionError):
        return "the connection was lost"
    if type(error).__name__ == "gaierror":
        return "unknown host name"
    return (error.strerror or "the network failed").lower().split("]")[-1].strip()


def build_tls_context(ca: str, kind: type[ssl.SSLContext]) -> Any:
    """Return a TLS context that verifies the certificate and host name.

    `ca` is a file with certificate authorities, or "" for those of the system.

    Raises:
        OSError: The file can't be used.
    """
    context = kind(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca:
        context.load_verify_locations(ca)
    else:
        context.load_default_certs()
    return context
