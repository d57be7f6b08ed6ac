"""Sends signed messages (Standard Webhooks) to receivers that a client names, which can't be trusted.

The address is checked and then connected to, so that no second look-up can lead to another one. Redirects are not
followed, responses are read up to a limit, and each request has a total time limit and a connection of its own.
"""

import base64
import binascii
import hmac
import ipaddress
import socket
import time
from functools import partial
from hashlib import sha256
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import NamedTuple

import anyio
import anyio.to_thread
import httpx2

TIMEOUT_S = 10.0
"""Upper limit for a request, from the look-up of the name to the end of the response, in seconds."""

MAX_BODY_BYTES = 256 << 10

_MAX_RESPONSE_BYTES = 64 << 10
_MAX_LOOK_UPS = 1_000
_MAX_URL = 2_048
_PREFIX = "whsec_"
_SECRET_BYTES = range(24, 65)


class Undeliverable(Exception):
    """A message wasn't delivered; the text says why."""


class Response(NamedTuple):
    """Status and beginning of the body."""

    status: int
    body: bytes


def parse_secret(secret: str) -> bytes:
    """Return the key that a secret contains.

    Raises:
        ValueError: It isn't valid.
    """
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_PREFIX) or len(key) not in _SECRET_BYTES:
        raise ValueError("delivery.secret must be whsec_ followed by 24 to 64 bytes in base64")
    return key


def sign(secret: str, id: str, body: bytes, now: int) -> dict[str, str]:
    """Return the headers of a message."""
    digest = hmac.digest(parse_secret(secret), b"%s.%d.%s" % (id.encode(), now, body), sha256)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(now),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def check_url(text: str, *, is_private_allowed: bool) -> httpx2.URL:
    """Return a receiver's URL.

    Raises:
        ValueError: It may not be used.
    """
    try:
        url = httpx2.URL(text if len(text) <= _MAX_URL else "")
    except (httpx2.InvalidURL, UnicodeError):
        url = httpx2.URL("")
    if url.scheme != "https" and not (is_private_allowed and url.scheme == "http"):
        raise ValueError(f"delivery.url must be an https URL of at most {_MAX_URL} characters")
    if not url.host or url.userinfo or url.fragment:
        raise ValueError("delivery.url must have a host, and neither a password nor a fragment")
    return url


class Poster:
    """Sends messages.

    Args:
        is_private_allowed: Whether receivers may be on this machine or in a private network, and use plain HTTP.
        timeout_s: Upper limit for a request, in seconds.
    """

    def __init__(self, *, is_private_allowed: bool = False, timeout_s: float = TIMEOUT_S) -> None:
        self.is_private_allowed = is_private_allowed
        self._timeout_s = timeout_s
        self._look_ups = anyio.CapacityLimiter(_MAX_LOOK_UPS)
        # Connections aren't reused: they would belong to an address, not to the name that was verified.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        # The client would send a receiver's cookies to all others at the same address.
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        self._http = httpx2.AsyncClient(
            trust_env=False, follow_redirects=False, timeout=timeout_s, limits=limits, cookies=no_cookies
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def post(self, url: str, secret: str, id: str, body: bytes, headers: dict[str, str]) -> Response:
        """Send a message once.

        Raises:
            Undeliverable: No response arrived, or the receiver may not be used.
        """
        try:
            with anyio.fail_after(self._timeout_s):
                target = check_url(url, is_private_allowed=self.is_private_allowed)
                address = await self._find_address(target)
                request = self._http.build_request(
                    "POST",
                    target.copy_with(host=address),
                    content=body,
                    headers={
                        **headers,
                        **sign(secret, id, body, int(time.time())),
                        "accept-encoding": "identity",
                        "content-type": "application/json",
                        "host": target.netloc.decode("ascii"),
                    },
                    extensions={"sni_hostname": target.raw_host.decode("ascii")},
                )
                response = await self._http.send(request, stream=True)
                try:
                    return Response(response.status_code, await _read_beginning(response))
                finally:
                    await response.aclose()
        except TimeoutError:
            raise Undeliverable(f"no response within {self._timeout_s:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise Undeliverable(str(error) or type(error).__name__) from None

    async def _find_address(self, url: httpx2.URL) -> str:
        port = url.port or (443 if url.scheme == "https" else 80)
        # The threads of asyncio are few, and a name server that doesn't reply occupies one for up to 30 s.
        look_up = partial(socket.getaddrinfo, url.raw_host.decode("ascii"), port, type=socket.SOCK_STREAM)
        found = await anyio.to_thread.run_sync(look_up, abandon_on_cancel=True, limiter=self._look_ups)
        for *_, (address, *_rest) in found:
            if self.is_private_allowed or _is_public(str(address)):
                return str(address)
        raise Undeliverable("the address of the receiver is private; start the server with --private-webhooks")


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    # An IPv6 address can contain an IPv4 one, to which the system or a translator connects.
    inner = (ip.ipv4_mapped or ip.sixtofour) if isinstance(ip, ipaddress.IPv6Address) else None
    is_translated = isinstance(ip, ipaddress.IPv6Address) and any(ip in net for net in _TRANSLATED)
    return ip.is_global and not ip.is_multicast and not is_translated and (inner is None or inner.is_global)


_TRANSLATED = tuple(
    map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96", "fec0::/10"))
)
"""Networks whose addresses contain an IPv4 address, or that are local, but count as global."""


async def _read_beginning(response: httpx2.Response) -> bytes:
    body = b""
    async for part in response.aiter_raw():
        body += part
        if len(body) >= _MAX_RESPONSE_BYTES:
            break
    return body[:_MAX_RESPONSE_BYTES]
