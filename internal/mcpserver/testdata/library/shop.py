def price(sku: str, pieces: int = 1) -> float:
    """Returns the price of pieces."""
    return 1.0 * pieces
