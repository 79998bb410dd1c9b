package hugot

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// folder is a model on the disk with its settings.
type folder struct {
	path      string // absolute
	onnx      string // name of the ONNX file
	onnxAt    string // the folder of the ONNX file
	digest    string // SHA-256 of the ONNX file, the tokenizer and the settings
	limit     int    // the tokens of a text that the model reads; later ones are ignored
	first     bool   // the vector is the state of the first token, not the mean of all
	normalize bool   // vectors get the length 1
	words     *wordPiece
}

// settings are the parts of the files of a folder that matter here.
type settings struct {
	MaxPositions int  `json:"max_position_embeddings"`  // config.json
	MaxLength    int  `json:"max_seq_length"`           // sentence_bert_config.json
	First        bool `json:"pooling_mode_cls_token"`   // 1_Pooling/config.json
	Mean         bool `json:"pooling_mode_mean_tokens"` // 1_Pooling/config.json
	Truncation   *struct {
		MaxLength int `json:"max_length"`
	} `json:"truncation"` // tokenizer.json
}

// openFolder finds the files of a model and reads their settings.
func openFolder(name string) (*folder, error) {
	if strings.Contains(name, "://") {
		return nil, fmt.Errorf("%q is an address; provider hugot reads a local folder", name)
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%q is not a folder with an ONNX model", name)
	}
	f := &folder{path: path}
	if err := f.findModel(); err != nil {
		return nil, fmt.Errorf("%q %w", name, err)
	}
	if err := f.readSettings(); err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	return f, nil
}

// findModel finds the ONNX file: model.onnx in the folder or in its folder onnx, else the only one there.
func (f *folder) findModel() error {
	for _, at := range []string{f.path, filepath.Join(f.path, "onnx")} {
		found, err := filepath.Glob(filepath.Join(escape(at), "*.onnx"))
		if err != nil {
			return err
		}
		for _, file := range found {
			if filepath.Base(file) == "model.onnx" {
				found = []string{file}
				break
			}
		}
		if len(found) > 1 {
			return fmt.Errorf("has %d ONNX files and none is model.onnx", len(found))
		}
		if len(found) == 1 {
			f.onnxAt, f.onnx = filepath.Split(found[0])
			return nil
		}
	}
	return errors.New("has no ONNX file; expected model.onnx or onnx/model.onnx")
}

// escape returns the pattern that matches a path.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// readSettings reads the limit of tokens and how a vector is made from the states of tokens.
func (f *folder) readSettings() error {
	var config, sentence, pooling, tokenizer settings
	sum := sha256.New()
	for _, file := range []struct {
		name     string
		into     *settings
		required bool
	}{
		{"config.json", &config, true}, {"tokenizer.json", &tokenizer, true},
		{"sentence_bert_config.json", &sentence, false}, {"1_Pooling/config.json", &pooling, false},
	} {
		if err := f.readJSON(file.name, file.into, file.required, sum); err != nil {
			return err
		}
	}
	raw, err := os.ReadFile(filepath.Join(f.path, "tokenizer.json"))
	if err != nil {
		return err
	}
	if f.words, err = parseWordPiece(raw); err != nil {
		return err
	}
	f.first = pooling.First
	if f.first && pooling.Mean || pooling == (settings{}) && f.has("1_Pooling/config.json") {
		return errors.New("1_Pooling/config.json: the only supported ways are mean and the first token (cls)")
	}
	f.limit = sentence.MaxLength
	if f.limit <= 0 && tokenizer.Truncation != nil {
		f.limit = tokenizer.Truncation.MaxLength
	}
	if f.limit <= 0 || config.MaxPositions > 0 && f.limit > config.MaxPositions {
		f.limit = config.MaxPositions
	}
	if f.limit <= 2 {
		f.limit = 512
	}
	if err := f.readModules(sum); err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(f.onnxAt, f.onnx))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(sum, file)
	f.digest = hex.EncodeToString(sum.Sum(nil))
	return err
}

// readModules reads what happens after the pooling: nothing, or a normalization.
func (f *folder) readModules(sum io.Writer) error {
	var modules []struct {
		Type string `json:"type"`
	}
	if err := f.readJSON("modules.json", &modules, false, sum); err != nil {
		return err
	}
	for _, m := range modules {
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
		case "Transformer", "Pooling":
		case "Normalize":
			f.normalize = true
		default:
			return fmt.Errorf("modules.json: a module of type %s is not supported", kind)
		}
	}
	return nil
}

// readJSON reads a file of the folder and adds it to the digest.
func (f *folder) readJSON(name string, into any, required bool, sum io.Writer) error {
	raw, err := os.ReadFile(filepath.Join(f.path, name))
	if errors.Is(err, fs.ErrNotExist) {
		if required {
			return fmt.Errorf("the file %s is missing", name)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = sum.Write(raw)
	return err
}

func (f *folder) has(name string) bool {
	_, err := os.Stat(filepath.Join(f.path, name))
	return err == nil
}

// pool makes the vector of a text from the states of its tokens.
func (f *folder) pool(states [][]float32) []float32 {
	if len(states) == 0 {
		return nil
	}
	if f.first {
		states = states[:1]
	}
	vector := make([]float32, len(states[0]))
	for _, state := range states {
		for k, x := range state {
			vector[k] += x
		}
	}
	var square float64
	for k := range vector {
		vector[k] /= float32(len(states))
		square += float64(vector[k]) * float64(vector[k])
	}
	if f.normalize && square > 0 {
		for k := range vector {
			vector[k] = float32(float64(vector[k]) / math.Sqrt(square))
		}
	}
	return vector
}
