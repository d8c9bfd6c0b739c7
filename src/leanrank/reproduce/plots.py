"""A line chart as SVG, written by hand: it needs no other package and opens in any browser."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 40, 48


@dataclass(frozen=True)
class Plot:
    """Lines over a common axis.

    Attributes
    ----------
    title, x_label, y_label : str
    x : sequence of float
    lines : mapping from str to sequence of float
        From the first colour (dark) to the last (light).
    """

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float]]

    def to_dict(self) -> dict[str, object]:
        """Give plain values, ready for JSON."""
        return {
            "title": self.title,
            "x_label": self.x_label,
            "y_label": self.y_label,
            "x": list(self.x),
            "lines": {name: list(values) for name, values in self.lines.items()},
        }

    def svg(self) -> str:
        """Draw the chart."""
        low, high, step = _axis([v for values in self.lines.values() for v in values])
        left, right = min(self.x), max(self.x)

        def across(x: float) -> float:
            return _LEFT + (x - left) / ((right - left) or 1) * (WIDTH - _LEFT - _RIGHT)

        def down(y: float) -> float:
            return HEIGHT - _BOTTOM - (y - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            _text(WIDTH / 2, 22, self.title, anchor="middle", size=14),
            _text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 10, self.x_label, anchor="middle"),
            _text(16, HEIGHT / 2, self.y_label, anchor="middle", turned=True),
        ]
        at = low
        while at <= high + step / 2:
            y = down(at)
            out.append(
                f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="#ddd" stroke-width="1"/>'
            )
            out.append(_text(_LEFT - 6, y + 4, f"{at:.{_digits(step)}f}", anchor="end"))
            at += step
        for x in _ticks(left, right):
            out.append(_text(across(x), HEIGHT - _BOTTOM + 18, f"{x:g}", anchor="middle"))
        for number, (name, values) in enumerate(self.lines.items()):
            colour = _colour(number, len(self.lines))
            points = " ".join(
                f"{across(x):.1f},{down(y):.1f}" for x, y in zip(self.x, values, strict=True)
            )
            out.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            )
            y = _TOP + 8 + 18 * number
            out.append(
                f'<path d="M{WIDTH - _RIGHT + 10} {y}h18" stroke="{colour}" stroke-width="2"/>'
            )
            out.append(_text(WIDTH - _RIGHT + 34, y + 4, name))
        return "\n".join([*out, "</svg>"]) + "\n"


def _axis(values: list[float]) -> tuple[float, float, float]:
    """Find round ends and a round step for an axis."""
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(span / 4))
    step *= next(f for f in (1, 2, 5, 10) if span / (step * f) <= 6)
    bottom, top = math.floor(low / step), math.ceil(high / step)
    return bottom * step, max(top, bottom + 1) * step, step


def _ticks(left: float, right: float) -> list[float]:
    step = max(1, round((right - left) / 9))
    return [left + step * i for i in range(int((right - left) / step) + 1)]


def _digits(step: float) -> int:
    return max(0, -math.floor(math.log10(step)))


def _colour(number: int, total: int) -> str:
    """Run from dark blue over green to orange, evenly."""
    stops = [(48, 18, 120), (20, 140, 140), (240, 150, 20)]
    at = 2 * number / max(1, total - 1)
    first = min(int(at), 1)
    mix = at - first
    parts = zip(stops[first], stops[first + 1], strict=True)
    return "#" + "".join(f"{round(a + (b - a) * mix):02x}" for a, b in parts)


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, turned: bool = False
) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{turn}>'
        f"{html.escape(text)}</text>"
    )
