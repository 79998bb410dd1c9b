"""Trains the small tokenizers of the tests on texts.json and counts the texts with them.

Usage: python make.py, with the packages tokenizers and sentencepiece. It writes
small.json.gz: the files, in base64 or as JSON, and the expected counts.
"""
import base64
import gzip
import io
import json
import pathlib

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

here = pathlib.Path(__file__).parent
texts = json.loads((here / "texts.json").read_text())
corpus = [t for t in texts.values() if t.strip()] * 3
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BYTES = pre_tokenizers.ByteLevel.alphabet()
FALLBACK = [f"<0x{b:02X}>" for b in range(256)]


def spm(**options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=out, minloglevel=2, hard_vocab_limit=False, character_coverage=0.98, **options)
    return out.getvalue()


def trained(model, trainer, normalizer=None, split=None, added=()):
    t = Tokenizer(model)
    t.normalizer, t.pre_tokenizer = normalizer, split
    t.train_from_iterator(corpus, trainer)
    t.add_tokens(list(added))
    return json.loads(t.to_str())


def byte_level():
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return trained(models.BPE(), trainers.BpeTrainer(vocab_size=420, show_progress=False, initial_alphabet=BYTES), None,
                   pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split]),
                   [AddedToken("<|im_start|>", special=True, normalized=False), AddedToken("<|im_end|>", special=True, normalized=False)])


def split_regex():
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CL100K), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    d = trained(models.BPE(ignore_merges=True), trainers.BpeTrainer(vocab_size=420, show_progress=False, initial_alphabet=BYTES),
                normalizers.NFC(), split, [AddedToken("hi", single_word=True), AddedToken("<pad>", lstrip=True, rstrip=True, normalized=False)])
    return d


def byte_fallback():
    d = trained(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True),
                trainers.BpeTrainer(vocab_size=600, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"] + FALLBACK, limit_alphabet=60),
                normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]))
    d["model"]["merges"] = [" ".join(m) for m in d["model"]["merges"]]  # the older form
    return d


def fuse_unknown():
    return trained(models.BPE(unk_token="<unk>", fuse_unk=True), trainers.BpeTrainer(vocab_size=300, show_progress=False, special_tokens=["<unk>"], limit_alphabet=60),
                   normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]), pre_tokenizers.Metaspace(prepend_scheme="first"),
                   [AddedToken("[SEP]", special=True)])


def suffix():
    return trained(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"),
                   trainers.BpeTrainer(vocab_size=300, show_progress=False, special_tokens=["<unk>"], limit_alphabet=80, end_of_word_suffix="</w>"),
                   normalizers.Strip(), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous")]))


def bert(lowercase):
    return trained(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=500, show_progress=False, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=150),
                   normalizers.BertNormalizer(lowercase=lowercase), pre_tokenizers.BertPreTokenizer())


def unigram():
    charsmap = charsmap_of(spm(model_type="unigram", vocab_size=400, normalization_rule_name="nmt_nfkc"))
    return trained(models.Unigram(), trainers.UnigramTrainer(vocab_size=400, show_progress=False, unk_token="<unk>", special_tokens=["<unk>"]),
                   normalizers.Sequence([normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")]), pre_tokenizers.Metaspace(prepend_scheme="always"))


def word_level():
    return trained(models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(vocab_size=80, show_progress=False, special_tokens=["[UNK]"]),
                   normalizers.NFD(), pre_tokenizers.Whitespace())


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 2:
            size, at = varint(data, at)
            yield key >> 3, data[at:at + size]
            at += size
        elif key & 7 == 5:
            at += 4
        else:
            _, at = varint(data, at)


def charsmap_of(model):
    """Returns the field precompiled_charsmap of a model of SentencePiece."""
    spec = next(v for k, v in fields(model) if k == 3)
    return next(v for k, v in fields(spec) if k == 2)


made = {
    "byte-level.json": byte_level(), "split.json": split_regex(), "byte-fallback.json": byte_fallback(), "fuse-unknown.json": fuse_unknown(),
    "suffix.json": suffix(), "bert-uncased.json": bert(True), "bert-cased.json": bert(False), "unigram.json": unigram(), "word-level.json": word_level(),
    "unigram.model": spm(model_type="unigram", vocab_size=400, user_defined_symbols=["<|im_start|>", "ll"]),
    "unigram-bytes.model": spm(model_type="unigram", vocab_size=700, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False),
    "bpe.model": spm(model_type="bpe", vocab_size=700, byte_fallback=True, split_digits=True, normalization_rule_name="identity", add_dummy_prefix=False, user_defined_symbols=["[INST]"]),
    "bpe-suffix.model": spm(model_type="bpe", vocab_size=500, treat_whitespace_as_suffix=True, normalization_rule_name="identity"),
}
out = {}
for name, content in made.items():
    if isinstance(content, bytes):
        p = sentencepiece.SentencePieceProcessor(model_proto=content)
        out[name] = {"model": base64.b64encode(content).decode(), "counts": {k: len(p.encode(t)) for k, t in texts.items()}}
    else:
        t = Tokenizer.from_str(json.dumps(content))
        out[name] = {"json": content, "counts": {k: len(t.encode(x, add_special_tokens=False).ids) for k, x in texts.items()}}
data = gzip.compress(json.dumps(out, ensure_ascii=False).encode(), 9, mtime=0)
(here / "small.json.gz").write_bytes(data)
print(len(data), {k: sum(v["counts"].values()) for k, v in out.items()})
