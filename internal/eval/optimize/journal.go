package optimize

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// journal has the results and answers of an optimization: the same search with them runs nothing twice.
type journal struct {
	file    *checkpoint.Journal                          // nil for none
	results map[string]map[int64]map[int]*evalrun.Result // by candidate, number of the row and trial
	answers map[string]record                            // by request

	mu   sync.Mutex
	next int64
}

// record is the results of a session with a candidate in a trial, or an answer.
type record struct {
	Candidate string            `json:"candidate,omitempty"`
	Results   []*evalrun.Result `json:"results,omitempty"`
	Request   string            `json:"request,omitempty"`
	Answer    string            `json:"answer,omitempty"`
	Money     float64           `json:"money,omitempty"`
}

// openJournal opens the journal and reads what it has.
func openJournal(cfg *evalrun.Config, bench *evalrun.Bench) (*journal, error) {
	j := &journal{results: map[string]map[int64]map[int]*evalrun.Result{}, answers: map[string]record{}}
	if cfg.Journal == "" {
		return j, nil
	}
	now, err := bench.Header()
	if err != nil {
		return nil, err
	}
	key, err := checkpoint.UserKey()
	if err != nil {
		return nil, err
	}
	if !cfg.Restart {
		j.file, err = checkpoint.Open(cfg.Journal, key)
		if err == nil && j.file.Empty() {
			if err := j.close(); err != nil {
				return nil, err
			}
			err = fs.ErrNotExist
		}
	}
	if cfg.Restart || errors.Is(err, fs.ErrNotExist) {
		j.file, err = checkpoint.Create(cfg.Journal, now, key)
		return j, err
	}
	if err != nil {
		return nil, err
	}
	changes := j.file.Header().Changes(now)
	switch {
	case !cfg.Resume:
		err = fmt.Errorf("%s has an interrupted optimization: use --resume to continue or --restart to start over", cfg.Journal)
	case len(changes) > 0:
		err = fmt.Errorf("--resume: this is not the optimization that was interrupted: %s; --restart starts over", strings.Join(changes, "; "))
	default:
		err = j.load()
	}
	if err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

func (j *journal) key() checkpoint.Key { return checkpoint.Key{Row: j.next + 1} }

// load reads the records.
func (j *journal) load() error {
	for {
		var r record
		found, err := j.file.Load(j.key(), func(data []byte) error { return json.Unmarshal(data, &r) })
		if err != nil || !found {
			return err
		}
		j.next++
		if r.Request != "" {
			j.answers[r.Request] = r
			continue
		}
		rows := j.results[r.Candidate]
		if rows == nil {
			rows = map[int64]map[int]*evalrun.Result{}
			j.results[r.Candidate] = rows
		}
		for _, result := range r.Results {
			if rows[result.Row] == nil {
				rows[result.Row] = map[int]*evalrun.Result{}
			}
			rows[result.Row][result.Trial] = result
		}
	}
}

// save adds a record.
func (j *journal) save(r record) error {
	if j.file == nil {
		return nil
	}
	data, err := textfmt.CompactJSON(r)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.file.Save(j.key(), []checkpoint.Row{{Data: data}}, true); err != nil {
		return err
	}
	j.next++
	return nil
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

func (j *journal) remove() error {
	if j.file == nil {
		return nil
	}
	return j.file.Remove()
}
