def total(count: int, price: float) -> float:
    """Multiplies."""
    return count * price
