"""Writes the byte-level BPE tokenizer of a GGUF file, as SmolLM2 has it, as tokenizer.json.

gguf_tokenizer.py FILE.gguf tokenizer.json
"""

import json
import sys

from gguf import GGUFReader

CONTROL = 3  # the type of special tokens


def tokenizer(fields):
    model, kind = fields["tokenizer.ggml.model"].contents(), fields["tokenizer.ggml.pre"].contents()
    if (model, kind) != ("gpt2", "smollm"):
        raise SystemExit(f"the tokenizer is {model}/{kind}, want gpt2/smollm")
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
            for i, t in enumerate(tokens) if types[i] == CONTROL
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {t: i for i, t in enumerate(tokens)},
            "merges": list(fields["tokenizer.ggml.merges"].contents()),
        },
    }


if __name__ == "__main__":
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        json.dump(tokenizer(GGUFReader(sys.argv[1]).fields), out, ensure_ascii=False)
