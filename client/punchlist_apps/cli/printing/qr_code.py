"""QR codes for terminals."""

_COLORS = "\x1b[38;5;16;48;5;231m"
"""Black on white from the fixed part of the palette, because themes change the first 16 colors."""

_BORDER = 2
"""Width of the white border, in modules."""


def draw(text: str) -> list[str]:
    """Return the lines of a QR code. A line shows two rows of modules, so that a module is square."""
    import segno

    code = segno.make_qr(text, error="l", boost_error=False)
    rows = [bytes(row) for row in code.matrix_iter(border=_BORDER)]
    rows.append(bytes(len(rows)))  # A code has an odd number of rows.
    return [
        _COLORS + "".join(" ▄▀█"[upper << 1 | lower] for upper, lower in zip(*pair, strict=True)) + "\x1b[0m"
        for pair in zip(rows[::2], rows[1::2], strict=True)
    ]


def count_columns(lines: list[str]) -> int:
    """Return the width of a drawn code."""
    return len(lines[0]) - len(_COLORS) - len("\x1b[0m")
