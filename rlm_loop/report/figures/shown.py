"""A figure that a notebook shows as a picture without `%matplotlib inline`."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure with a picture of its own for IPython, which asks for it where matplotlib is not set up."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=120)
        return buffer.getvalue()
