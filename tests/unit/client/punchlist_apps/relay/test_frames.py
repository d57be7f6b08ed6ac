import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchlist_apps.relay import frames
from punchlist_apps.relay.frames import Decoder, Hello, InvalidFrame

FRAMES = st.lists(
    st.tuples(st.sampled_from([frames.LINE, frames.OUTPUT]), st.integers(0, 2**40), st.binary(max_size=200))
)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@given(FRAMES, st.integers(1, 50))
def test_frames_survive_any_split(sent: list[tuple[bytes, int, bytes]], size: int) -> None:
    data = b"".join(frames.encode(*frame) for frame in sent)
    decoder = Decoder()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert [frame for piece in pieces for frame in decoder.feed(piece)] == sent


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"o 1\n", b"x" * 100, b"o one 2\nab"])
def test_other_protocol_is_rejected(data: bytes) -> None:
    with pytest.raises(InvalidFrame):
        Decoder().feed(data)


@given(st.lists(TEXT), st.dictionaries(TEXT.filter(lambda name: name and "=" not in name), TEXT), TEXT)
def test_hello_keeps_words_and_variables(words: list[str], env: dict[str, str], directory: str) -> None:
    hello = Hello("0" * 32, is_resumed=True, directory=directory, words=words, env=env)
    got = frames.decode_hello(frames.encode_hello(hello))
    assert (got.session, got.is_resumed, got.directory, got.words, got.env) == ("0" * 32, True, directory, words, env)


def test_file_names_that_are_not_text_pass() -> None:
    hello = Hello("0" * 32, is_resumed=False, directory="/a\udcff", words=[], env={})
    assert frames.decode_hello(frames.encode_hello(hello)).directory == "/a\udcff"


def test_hello_of_another_version_is_rejected() -> None:
    with pytest.raises(InvalidFrame):
        frames.decode_hello(b"relay/9\0something else")
