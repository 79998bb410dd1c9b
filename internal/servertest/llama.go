package servertest

import (
	_ "embed" // for llama.py
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// LlamaVariable is the environment variable with the folder that llama of .ci/run makes: a Python
// environment with the server of llama.cpp, and the models smollm2.gguf and qwen2.5.gguf. The
// first is SmolLM2-135M-Instruct, the second has the tokenizer and the chat template of
// Qwen 2.5 and random weights.
const LlamaVariable = "QTYPE_LLAMA"

//go:embed llama.py
var llamaScript []byte

// Llama starts the server of llama.cpp with a model of the folder and a context window.
func Llama(model string, contextWindow int) (*Server, error) {
	folder := os.Getenv(LlamaVariable)
	if folder == "" {
		return nil, fmt.Errorf("%w: set %s to a folder with xllamacpp and models", ErrMissing, LlamaVariable)
	}
	start := func(s *Server) (*exec.Cmd, error) {
		script := filepath.Join(s.Folder, "llama.py")
		if err := os.WriteFile(script, llamaScript, 0o600); err != nil {
			return nil, err
		}
		return exec.Command(filepath.Join(folder, "bin/python"), script, filepath.Join(folder, model), strconv.Itoa(s.Port), strconv.Itoa(contextWindow)), nil
	}
	return launch(&Server{start: start, ready: func(s *Server) error { return answers("http://" + s.Address() + "/health") }})
}
