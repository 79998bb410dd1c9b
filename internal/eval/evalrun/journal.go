package evalrun

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// journal has the finished rows of an evaluation. A nil *journal does nothing.
type journal struct{ file *checkpoint.Journal }

// openJournal opens the journal of an evaluation, and puts the results that it has into
// the execution.
func openJournal(x *execution) (*journal, error) {
	cfg := &x.config
	if cfg.Journal == "" {
		return nil, nil
	}
	now, err := x.header()
	if err != nil {
		return nil, err
	}
	key, err := checkpoint.UserKey()
	if err != nil {
		return nil, err
	}
	if cfg.Restart {
		j, err := checkpoint.Create(cfg.Journal, now, key)
		return &journal{j}, err
	}
	file, err := checkpoint.Open(cfg.Journal, key)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = checkpoint.Create(cfg.Journal, now, key)
		return &journal{file}, err
	}
	if err != nil {
		return nil, err
	}
	j := &journal{file}
	finished, _ := file.Rows()
	changes := file.Header().Changes(now)
	switch {
	case file.Empty():
		if err := j.close(); err != nil {
			return nil, err
		}
		file, err = checkpoint.Create(cfg.Journal, now, key)
		return &journal{file}, err
	case !cfg.Resume:
		return nil, errors.Join(fmt.Errorf("%s has an interrupted evaluation (%s finished): use --resume to continue or --restart to start over",
			cfg.Journal, textfmt.Count(finished, "row")), j.close())
	case len(changes) > 0:
		return nil, errors.Join(fmt.Errorf("--resume: this is not the evaluation that was interrupted: %s; --restart starts over", strings.Join(changes, "; ")), j.close())
	}
	if err := j.load(x); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

// header describes the evaluation: its applications, metrics, variants and data.
func (x *execution) header() (checkpoint.Header, error) {
	h := checkpoint.Header{Started: time.Now().UTC().Truncate(time.Second), Run: rand.Text(), Flow: x.flow.ID, Parts: map[string]string{}, Settings: map[string]string{}}
	var err error
	described := x.Evaluation.data
	if len(x.users) > 0 {
		described = x.config.Path
		for i, r := range x.data.rows {
			h.Settings[fmt.Sprintf("user %d", r.Number)] = x.data.digests()[i]
		}
	}
	if h.Settings["tools"], err = digest(x.tools); err != nil {
		return h, err
	}
	if h.Input, err = checkpoint.Describe(described); err != nil {
		return h, err
	}
	h.Settings["--limit"] = fmt.Sprint(x.config.Limit)
	h.Settings["--trials"], h.Settings["--until"] = fmt.Sprint(x.trials), fmt.Sprint(x.config.Until)
	h.Settings["--session-column"] = x.config.Session
	if x.config.OnlyFailed != nil {
		if h.Settings["--only-failed"], err = digest(x.config.OnlyFailed.failedRows()); err != nil {
			return h, err
		}
	}
	for _, m := range x.metrics {
		if h.Settings["metric "+m.declared.Name()], err = digest(m.declared); err != nil {
			return h, err
		}
		for _, judge := range m.models() {
			for name, sum := range checkpoint.Fingerprint(judge, checkpoint.FingerprintOptions{}) {
				h.Parts["metric "+m.declared.Name()+": "+name] = sum
			}
		}
	}
	for i, v := range x.variants {
		id := v.declared.ID
		if h.Settings["variant "+id], err = digest([]any{i, v.declared}); err != nil {
			return h, err
		}
		for _, f := range v.program.App.Flows {
			if f.ID != x.flow.ID {
				continue
			}
			for name, sum := range checkpoint.Fingerprint(f, checkpoint.FingerprintOptions{Ignore: []string{"description", "ui"}}) {
				h.Parts[id+": "+name] = sum
			}
		}
	}
	return h, nil
}

// digest returns a hash of the keys of a metric or variant.
func digest(v any) (string, error) {
	text, err := json.Marshal(v)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}

// load puts the recorded results into the execution.
func (j *journal) load(x *execution) error {
	for i := range x.results {
		_, err := j.file.Load(key(i), func(data []byte) error {
			x.results[i] = &Result{}
			return json.Unmarshal(data, x.results[i])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func key(i int) checkpoint.Key { return checkpoint.Key{Row: int64(i) + 1} }

// save records a result.
func (j *journal) save(i int, r *Result) error {
	if j == nil {
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return j.file.Save(key(i), []checkpoint.Row{{Data: data, Failed: r.Error != ""}}, true)
}

// close closes the journal, from which the evaluation can be resumed.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}

// remove deletes the journal: the evaluation is complete.
func (j *journal) remove() error {
	if j == nil {
		return nil
	}
	return j.file.Remove()
}
