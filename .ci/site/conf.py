"""Settings of Sphinx for docs as a site: make site.

docs/README.md is the first page, and the tables below its headings are the navigation.
Links to files outside docs lead to the repository.
"""

import os.path
import pathlib
import re
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/qtype-dev/qtype/blob/main/"
PLAYGROUND = ROOT / "bin" / "playground"

project = "qtype"
html_title = "qtype"
root_doc = "README"
source_suffix = {".md": "markdown"}
extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["**/.*"]
nitpicky = True
myst_disable_syntax = ["footnote_ref", "footnote_inline", "footnote_def"]
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
myst_heading_anchors = 4

html_theme = "furo"
html_search_scorer = str(ROOT / ".ci" / "site" / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_extra_path = [str(ROOT / "docs" / "llms.txt")]
templates_path = ["templates"]
html_sidebars = {
    "**": ["sidebar/brand.html", "sidebar/search.html", "sidebar/scroll-start.html", "sidebar/navigation.html"]
    + (["playground.html"] if PLAYGROUND.is_dir() else [])
    + ["sidebar/scroll-end.html"]
}
html_theme_options = {"source_repository": "https://github.com/qtype-dev/qtype/", "source_branch": "main", "source_directory": "docs/"}

# A block of code, code in a line, or a link.
LINK = re.compile(r"(^ *```.*?^ *```$|`[^`\n]*`)|(!?\[(?:`[^`]*`|[^\]`])*\]\()([^)\s]+)(\))", re.M | re.S)
ROW = re.compile(r"^\| \[([^\]]*)\]\(([^)]*)\.md\) \|", re.M)
HEADING = re.compile(r"^(###?) ([^\n]*)\n(.*?)(?=^###? |\Z)", re.M | re.S)


def outside(page, link):
    """Returns a link of a page, to the repository if it leads outside docs."""
    path, _, fragment = link.partition("#")
    if not path or ":" in path or path.startswith("/"):
        return link
    target = os.path.normpath(os.path.join("docs", os.path.dirname(page), path))
    if target.startswith("docs/") and (ROOT / target).is_file() and not target.endswith(".go"):
        return link
    return REPOSITORY + target + ("#" + fragment if fragment else "")


def prepare(app, page, source):
    """Rewrites the links of a page, and adds the navigation to the pages with an index."""
    text = LINK.sub(lambda m: m[2] + outside(page, m[3]) + m[4] if m[2] else m[0], source[0])
    if page == "README":
        text += navigation(text)
    elif page == "reference/README":
        text += toctree("", ROW.findall(text))
    elif page == "decisions/README":
        text += toctree("", [("", name) for name in re.findall(r"\]\(([0-9][^)]*)\.md\)", text)])
    source[0] = text


def navigation(index):
    """Returns the navigation: a part for each section of the first page, and for each group of one."""
    parts, section = "", ""
    for level, title, rows in HEADING.findall(index):
        if level == "##":
            section, caption = title, title
        else:
            caption = f"{section}: {title[0].lower()}{title[1:]}"
        if pages := ROW.findall(rows):
            parts += toctree(caption, pages)
    return parts


def toctree(caption, pages):
    """Returns a hidden table of contents."""
    lines = ["", "", "```{toctree}", ":hidden:"] + ([f":caption: {caption}"] if caption else []) + [""]
    lines += [f"{title} <{path}>" if title else path for title, path in pages]
    return "\n".join(lines + ["```", ""])


def finish(app, error):
    """Copies the first page to index.html, and the playground if it was built."""
    if error or app.builder.name != "html":
        return
    out = pathlib.Path(app.outdir)
    shutil.copy(out / "README.html", out / "index.html")
    if PLAYGROUND.is_dir():
        shutil.copytree(PLAYGROUND, out / "playground", dirs_exist_ok=True)


def setup(app):
    app.connect("source-read", prepare)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True}
