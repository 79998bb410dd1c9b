"""Compares the text of PDF files with that of poppler: corpus.py QTYPE FOLDER. It prints each file that is refused or that
differs, and the mean of the F1 of words. Any folder serves; the archives of pypdf and pikepdf on PyPI have some."""
import collections, json, os, re, subprocess, sys, tempfile, unicodedata

qtype, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DOCUMENT = """id: corpus
flows:
  - id: read
    variables: [{id: path, type: text}, {id: kind, type: text}, {id: doc, type: RAGDocument}, {id: plain, type: RAGDocument}]
    inputs: [path, kind]
    outputs: [plain]
    steps:
      - {type: Construct, id: make, inputs: [path, kind], outputs: [doc], field_bindings: {content: path, type: kind, file_id: path, file_name: path}}
      - {type: DocToTextConverter, id: convert, inputs: [doc], outputs: [plain]}
"""


def words(text):
    text = unicodedata.normalize("NFKC", re.sub(r"[*_#|\\`]", " ", text))
    return collections.Counter(re.findall(r"[\u2e80-\ud7ff]|[^\W\u2e80-\ud7ff]+", text.casefold()))  # a sign of a script without spaces is a word


def f1(got, want):
    same = sum((got & want).values())
    return 1.0 if not got and not want else 2 * same / (sum(got.values()) + sum(want.values()))


names = sorted(n for n in os.listdir(folder) if n.lower().endswith(".pdf"))
with tempfile.TemporaryDirectory() as tmp:
    open(os.path.join(tmp, "corpus.qtype.yaml"), "w").write(DOCUMENT)
    with open(os.path.join(tmp, "in.jsonl"), "w") as f:
        for n in names:
            f.write(json.dumps({"path": os.path.join(folder, n), "kind": "file"}) + "\n")
    subprocess.run([qtype, "run", "corpus.qtype.yaml", "-I", "in.jsonl", "-o", "out.jsonl", "-q"], cwd=tmp, capture_output=True)
    rows = [json.loads(line) for line in open(os.path.join(tmp, "out.jsonl"))]
scores, refused = [], 0
for name, row in zip(names, rows):
    other = subprocess.run(["pdftotext", os.path.join(folder, name), "-"], capture_output=True)
    want = words(other.stdout.decode("utf-8", "replace"))
    if row["error"]:
        message = row["error"]["message"] if isinstance(row["error"], dict) else row["error"]
        if other.returncode == 0 and want:
            refused += 1
            print(f"refused {name} ({sum(want.values())} words): {message[-120:]}")
        continue
    if other.returncode != 0 or not want:
        continue
    score = f1(words(row["plain"]["content"]), want)
    scores.append(score)
    if score < 0.95:
        print(f"{score:.3f} {name} ({sum(want.values())} words)")
print(f"{len(scores)} files read, F1 of words {sum(scores) / len(scores):.4f}; {refused} files refused that poppler reads")
