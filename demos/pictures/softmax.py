"""Pictures · Softmax moved by hand, with a guess first: that of Explore (chapter 3.6)."""

from demos.site._explore import by_hand
from demos.site._templates import inline

BEFORE = """Softmax turns scores x into weights y. Here the scores are a scale c times the products
q·k of a query with its keys, each of d_k numbers (chapter 11)."""


def picture() -> str:
    """Return the part that both pages have, and where it is explained further."""
    link = '<a href="softmax.html">What the scale does behind softmax</a>'
    return f'<p>{inline(BEFORE)}</p>{by_hand()}<p class="after">{link}</p>'
