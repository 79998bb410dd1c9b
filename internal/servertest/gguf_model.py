"""Writes a model with the tokenizer and the chat template of a folder, and random weights, as GGUF.

gguf_model.py FOLDER FILE.gguf

FOLDER has a byte-level BPE tokenizer.json, as Qwen 2.5 has it, and its tokenizer_config.json.
Servers count tokens of the file as those of the model; what it answers means nothing.
"""

import json
import pathlib
import sys

import numpy
from gguf import GGUFWriter, TokenType

WIDTH, HEADS, FEED_FORWARD, CONTEXT = 32, 1, 32, 32768


def write_tokenizer(out, tokenizer, config):
    vocab = {text: i for text, i in tokenizer["model"]["vocab"].items()}
    special = {t["content"]: t["id"] for t in tokenizer["added_tokens"]}
    vocab.update(special)
    tokens = [text for text, _ in sorted(vocab.items(), key=lambda entry: entry[1])]
    if sorted(vocab.values()) != list(range(len(vocab))):
        raise SystemExit("the ids of the tokens have gaps")
    control = {t["content"] for t in tokenizer["added_tokens"] if t["special"]}
    kind = lambda t: TokenType.CONTROL if t in control else TokenType.USER_DEFINED if t in special else TokenType.NORMAL
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("qwen2")
    out.add_token_list(tokens)
    out.add_token_types([kind(t) for t in tokens])
    out.add_token_merges(tokenizer["model"]["merges"])
    out.add_eos_token_id(vocab[config["eos_token"]])
    out.add_add_bos_token(False)
    out.add_chat_template(config["chat_template"])
    return len(tokens)


def write_weights(out, tokens):
    random = numpy.random.default_rng(1)

    def add(name, *shape):
        out.add_tensor(name, (random.standard_normal(shape) / 8).astype(numpy.float16 if len(shape) > 1 else numpy.float32))

    add("token_embd.weight", tokens, WIDTH)
    add("output_norm.weight", WIDTH)
    for name in ("attn_norm", "ffn_norm"):
        add(f"blk.0.{name}.weight", WIDTH)
    for name in ("attn_q", "attn_k", "attn_v"):
        add(f"blk.0.{name}.weight", WIDTH, WIDTH)
        add(f"blk.0.{name}.bias", WIDTH)
    add("blk.0.attn_output.weight", WIDTH, WIDTH)
    add("blk.0.ffn_gate.weight", FEED_FORWARD, WIDTH)
    add("blk.0.ffn_up.weight", FEED_FORWARD, WIDTH)
    add("blk.0.ffn_down.weight", WIDTH, FEED_FORWARD)


def main(folder, path):
    read = lambda name: json.loads((pathlib.Path(folder) / name).read_text(encoding="utf-8"))
    out = GGUFWriter(path, "qwen2")
    out.add_name("random weights")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_block_count(1)
    out.add_feed_forward_length(FEED_FORWARD)
    out.add_head_count(HEADS)
    out.add_head_count_kv(HEADS)
    out.add_layer_norm_rms_eps(1e-6)
    out.add_rope_freq_base(1e6)
    write_weights(out, write_tokenizer(out, read("tokenizer.json"), read("tokenizer_config.json")))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
