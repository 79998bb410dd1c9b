from promptflow.core import tool


def helper(x): return x


@tool
def fetch_title(url: str, retries: int = 3, strict: bool = True, name: str = "") -> str:
    return url
