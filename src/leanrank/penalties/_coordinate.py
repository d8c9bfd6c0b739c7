"""The minimum over one weight of a quadratic plus its penalty."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math

from leanrank._jit import kernel


@kernel
def coordinate_minimum(z, beta, above, below, ridge, rate, power):
    """Minimise ½ beta (x − z)² + above·x⁺ + below·x⁻ + ½ ridge x² + rate |x|^power over x.

    Either ``rate`` is zero, or the first three are (infinite ``above`` and ``below``: x = 0).
    """
    if rate > 0.0:
        return _power_minimum(z, rate / beta, power)
    pull = beta * z
    if pull > above:
        return (pull - above) / (beta + ridge)
    if pull < -below:
        return (pull + below) / (beta + ridge)
    return 0.0


@kernel
def _power_minimum(z, t, power):
    """Minimise ½ (x − z)² + t |x|^power in closed form, for power 4/3, 3/2, 3 or 4."""
    size = abs(z)
    if size == 0.0:
        return 0.0
    if power == 3.0:  # x + 3 t x² = z
        x = 2.0 * size / (1.0 + math.sqrt(1.0 + 12.0 * t * size))
    elif power == 1.5:  # x + 1.5 t √x = z
        root = 0.75 * t
        x = (size / (root + math.sqrt(root * root + size))) ** 2
    elif power == 4.0:  # x + 4 t x³ = z
        x = _cubic(0.25 / t, 0.25 * size / t)
    else:  # x + (4/3) t x^(1/3) = z: a cubic in the cube root of x
        x = _cubic(4.0 * t / 3.0, size) ** 3
    return math.copysign(x, z)


@kernel
def _cubic(p, q):
    """Solve r³ + p r = q for p, q ≥ 0."""
    if p == 0.0:
        return q ** (1.0 / 3.0)
    # r = 2 √(p/3) sinh(θ/3), sinh θ = (q/2) (3/p)^{3/2}: exact where Cardano's roots cancel
    scale = math.sqrt(p / 3.0)
    r = 2.0 * scale * math.sinh(math.asinh(0.5 * q / (scale * scale * scale)) / 3.0)
    return r - (r * r * r + p * r - q) / (3.0 * r * r + p)
