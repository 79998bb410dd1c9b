"""Writes the OpenAPI documents of FastAPI's own examples: SOURCES FOLDER."""

import importlib
import json
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")
sources, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(sources))
folder.mkdir(parents=True, exist_ok=True)
for path in sorted((sources / "docs_src").rglob("*.py")):
    name = ".".join(path.relative_to(sources).with_suffix("").parts)
    try:
        app = getattr(importlib.import_module(name), "app", None)
        document = app.openapi() if app is not None else None
    except (Exception, SystemExit):  # an example that needs another package
        continue
    if document and document.get("paths"):
        (folder / (name.removeprefix("docs_src.") + ".json")).write_text(json.dumps(document))
