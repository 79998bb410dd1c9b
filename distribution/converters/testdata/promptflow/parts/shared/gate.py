from promptflow.core import tool


@tool
def gate(question: str, limits: dict) -> bool:
    return len(question) < limits["length"]
