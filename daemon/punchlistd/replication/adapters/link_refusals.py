"""Why a space can't be used, where all engines have it alike: kinds, each with a sentence that says what to do.

The texts of client libraries never reach people: whatever they raise becomes a row of a table.
"""

import os
import ssl
import stat
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

ADD = "punch space add"

SKEW_S = 30.0
"""How far the clocks of this machine and of a server may be apart before a person is told, in seconds."""


class Row(NamedTuple):
    """What a kind of refusal means."""

    final: bool
    """Whether a retry is useless until a user intervenes."""
    text: str


COMMON: dict[str, Row] = {
    "unreachable": Row(False, "No server answers at {where} ({cause}). Check the address, the network and the server."),
    "bad_certificate": Row(
        True,
        "No authority that this machine trusts has signed the certificate of {where}. If the space has an authority of"
        " its own, name its certificate: " + ADD + " … --ca FILE.",
    ),
    "wrong_host": Row(
        True,
        "The certificate of {where} is for another host than {host}. Use the name that stands in the certificate, or"
        " have one made for {host}.",
    ),
    "certificate_expired": Row(
        True, "The certificate of {where} has expired, or this machine's clock is wrong. Have it renewed."
    ),
    "certificate_not_yet_valid": Row(
        True, "The certificate of {where} is not valid yet: this machine's clock, or the server's, is wrong. Set it."
    ),
    "tls_failed": Row(True, "{where} and this machine agree on no TLS ({cause}). Check what answers at this port."),
    "bad_ca": Row(True, "{ca} holds no certificates in PEM form, or can't be read. Name another file with --ca."),
    "creds_missing": Row(
        True, "{creds} can't be read ({cause}). Name the space's creds file: " + ADD + " … --creds FILE."
    ),
    "creds_open": Row(True, "Others than you may read {creds}. Close it: chmod 600 {creds}"),
    "creds_needed": Row(True, "{where} lets nobody in without creds. Name them: " + ADD + " … --creds FILE."),
    "unauthorized": Row(
        True, "{where} does not know these creds, or knows them no more. Ask the space's keeper for new ones."
    ),
    "no_permission": Row(
        True,
        "These creds may not read the space {space} at {where}. Ask its keeper for permission, or name another space.",
    ),
    "clock_skew": Row(
        True, "The clocks of this machine and of {where} are {skew} s apart. Set them by NTP, then try again."
    ),
    "replaced": Row(False, "The space at {where} is another one than a moment ago: it was made anew, or restored."),
    "refused": Row(False, "{where} ended the connection ({cause}); it is tried again."),
}


class Refusal(Exception):
    """A space can't be used now; each engine has its own table.

    Attributes:
        kind: A key of the table.
        final: Whether a retry is useless until a user intervenes.
    """

    rows: ClassVar[Mapping[str, Row]] = COMMON

    def __init__(self, kind: str, **facts: object) -> None:
        row = self.rows[kind]
        super().__init__(row.text.format(**facts))
        self.kind = kind
        self.final = row.final


def check_clock(refused: type[Refusal], where: str, skew_s: float) -> None:
    """Compare the clocks of this machine and of a server.

    Raises:
        Refusal: They are too far apart.
    """
    if abs(skew_s) > SKEW_S:
        raise refused("clock_skew", where=where, skew=round(abs(skew_s)))


R = TypeVar("R", bound=Refusal)

MAX_CREDS_BYTES = 64 << 10
"""What a creds file may have."""


def read_private(path: str, refused: type[Refusal]) -> str:
    """The text of a creds file.

    Raises:
        Refusal: It can't be read, or others may read it.
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
"""OpenSSL's number of why a certificate does not hold → our kind."""


def refusal_of_network(error: BaseException, refused: type[R], facts: Mapping[str, str]) -> R | None:
    """What an attempt to connect ended with, if that was TLS, time or the network."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return refused(_CERTIFICATE.get(error.verify_code, "bad_certificate"), **facts)
    if isinstance(error, ssl.SSLError):
        return refused("tls_failed", cause=reason_of_tls(error), **facts)
    if isinstance(error, TimeoutError):
        return refused("unreachable", cause="no answer in time", **facts)
    return refused("unreachable", cause=in_words(error), **facts) if isinstance(error, OSError) else None


def reason_of_tls(error: ssl.SSLError) -> str:
    return str(error.reason or "no answer").lower().replace("_", " ")


def in_words(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, ConnectionError):
        return "the connection was cut"
    if type(error).__name__ == "gaierror":
        return "the host's name is not known"
    return (error.strerror or "the network failed").lower().split("]")[-1].strip()


def tls_settings(ca: str, kind: type[ssl.SSLContext]) -> Any:
    """TLS that checks the certificate and the host's name against some authorities; "": the system's.

    Raises:
        OSError: The file of the authorities can't be used.
    """
    context = kind(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca:
        context.load_verify_locations(ca)
    else:
        context.load_default_certs()
    return context
