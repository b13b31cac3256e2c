"""Where a line of code may be broken on a phone, and where what follows it begins."""

import html
import re

TAG = re.compile(r"<[^>]*>")
# Where a line that is too long for a phone may be broken, outside of tags: after blanks; in what
# has none for longer than 24 letters also after a comma and before the dot of a name; if need be
# after a bracket.
BLANKS = re.compile(r"(?<=[^ ]) +(?! |[^<]*>)")
JOINTS = re.compile(
    r"((?<=,)(?=[^ <])|(?<=})(?={)|(?<![\d. ])(?=\.(?:<[^>]*>)*[A-Za-z_]))(?![^<]*>)"
)
OPENS = re.compile(r"(?<=[(\[])(?![^<]*>)")
REMARK = re.compile(r'<span class="c1">.*?</span>')
NARROW, LONGEST = 34, 24
STEP, DEEPEST = 4, 12  # blanks on a phone, for one step to the right and for all of them


def hanging(code: str) -> str:
    r"""Return lines as elements that know how far they are indented, and how far on a phone.

    Each knows where it may be broken, too: not within a name or a number, and not after a bracket
    that opens. What is printed stands in columns, and keeps them.

    >>> hanging("for i in x:\n    i")
    '<i>for i in x:\n</i><i style="--i:4">    i</i>'
    >>> hanging("f(x,\n          y)")
    '<i>f(x,\n</i><i style="--i:10;--p:4">          y)</i>'
    """
    made, levels = [], [(0, 0)]  # where the lines above begin that this one is inside of
    for line in code.splitlines(keepends=True):
        plain = html.unescape(TAG.sub("", line))
        depth = len(plain) - len(plain.lstrip(" "))
        if plain.strip():
            while levels[-1][0] > depth:
                levels.pop()
            if depth > levels[-1][0]:
                levels.append((depth, min(depth, levels[-1][1] + STEP, DEEPEST)))
        narrow = depth if '<span class="go">' in line else levels[-1][1]
        if len(plain) > LONGEST:
            line = breakable(line)
        at = f"--i:{depth}" + f";--p:{narrow}" * (narrow != depth)
        made.append(f'<i style="{at}">{line}</i>' if depth else f"<i>{line}</i>")
    return "".join(made)


def breakable(line: str) -> str:
    """Return a line with a mark at each place where it may be broken."""
    line = BLANKS.sub(lambda run: f"<u>{run[0]}</u><wbr>" if run[0][1:] else " <wbr>", line)
    for joints, most in ((JOINTS, LONGEST), (OPENS, NARROW)):
        parts = line.split("<wbr>")
        lengths = [len(html.unescape(TAG.sub("", part)).strip()) for part in parts]
        line = "<wbr>".join(
            joints.sub("<wbr>", part) if length > most else part
            for part, length in zip(parts, lengths, strict=True)
        )
    return REMARK.sub(lambda remark: remark[0].replace("<wbr>", ""), line)
