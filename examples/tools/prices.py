"""Prices of a print shop: called by app.qtype.yaml in this folder."""

import datetime
from dataclasses import dataclass

PAGE = 0.04  # a page, in the currency of the quote
TAX = 0.2


@dataclass
class Quote:
    net: float
    tax: float
    total: float
    due: datetime.date


def quote(items, ordered, express=False):
    """What the items cost together, and when they are done."""
    net = 0.0
    for item in items:
        if item.pages <= 0 or item.copies <= 0:
            raise ValueError(f"{item.title}: {item.pages} pages and {item.copies} copies are no job")
        net += item.pages * item.copies * PAGE
    if express:
        net *= 1.5
    tax = round(net * TAX, 2)
    due = ordered + datetime.timedelta(days=1 if express else 3)
    return Quote(net=round(net, 2), tax=tax, total=round(net + tax, 2), due=due)
