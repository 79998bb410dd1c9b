"""Serves a GGUF file with the server of llama.cpp.

llama.py FILE.gguf PORT CONTEXT

CONTEXT is the context window in tokens. The server uses one thread, because tests run at the same time.
"""

import sys
import threading

import xllamacpp

path, port, context = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = path
params.hostnames = ["127.0.0.1"]
params.port = int(port)
params.n_ctx = int(context)
params.n_parallel = 1
params.warmup = False
params.n_cache_reuse = 16  # rounds that move when older ones leave
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
threading.Event().wait()
