package document

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Evaluation is the evaluation of an application, and the rows of its data.
type Evaluation struct {
	Comments []string         // at the top of the file
	Trials   int              // of each row; 0 for one
	Variants []*Block         // the changes of the application that are compared
	Rows     []map[string]any // by column; the first ones are inputs of the flow

	metrics []*Metric
	counts  map[string]int // by row and key, the metrics that it has
}

// Metric is a metric of some rows.
type Metric struct {
	ID     string
	Block  *Block // the keys of the metric after id, without those that say which rows it is about
	Fixed  string // the key that has the expected value if all rows have the same one, such as value; empty for none
	Column string // the key that names the column with the expected value, if it is not the same

	key  string
	rows map[int]any // the expected values by row, from 0
}

// Check adds a check of a row: a metric that other rows share if they have the same key. expected is nil for a metric without a value
// of each row.
func (e *Evaluation) Check(row int, key string, m Metric, expected any) {
	if e.counts == nil {
		e.counts = map[string]int{}
	}
	at := fmt.Sprintf("%d %s", row, key)
	e.counts[at]++
	key = fmt.Sprintf("%s #%d", key, e.counts[at])
	i := slices.IndexFunc(e.metrics, func(m *Metric) bool { return m.key == key })
	if i < 0 {
		m.key, m.rows, i = key, map[int]any{}, len(e.metrics)
		base, taken := m.ID, func(id string) bool {
			return slices.ContainsFunc(e.metrics, func(m *Metric) bool { return m.ID == id })
		}
		for n := 2; taken(m.ID); n++ {
			m.ID = fmt.Sprintf("%s_%d", base, n)
		}
		e.metrics = append(e.metrics, &m)
	}
	e.metrics[i].rows[row] = expected
}

// common returns the value that a metric has in all rows.
func (m *Metric) common(rows int) (v any, ok bool) {
	first := true
	for _, x := range m.rows {
		if !first && fmt.Sprintf("%#v", x) != fmt.Sprintf("%#v", v) {
			return nil, false
		}
		v, first = x, false
	}
	return v, len(m.rows) == rows || m.Fixed != ""
}

// block returns a metric as YAML, and adds its columns to the rows.
func (e *Evaluation) block(m *Metric) *Block {
	b := &Block{Inline: true}
	b.Set("id", m.ID)
	b.Entries = append(b.Entries, m.Block.Entries...)
	column := "check_" + m.ID
	fill := func(of func(any) any) {
		for i, x := range m.rows {
			e.Rows[i][column] = of(x)
		}
	}
	v, same := m.common(len(e.Rows))
	switch {
	case m.Fixed == "":
	case same:
		if list, ok := v.([]string); ok {
			v = NameList(list)
		}
		b.Set(m.Fixed, v)
	default:
		if m.Column == "rubric" {
			b.Set("rubric", "The output does what the expected text says.")
		}
		b.Set("expected", column)
		fill(func(x any) any { return x })
	}
	if len(m.rows) < len(e.Rows) {
		b.Set("when", column)
		if m.Fixed == "" || same {
			fill(func(any) any { return true })
		}
	}
	if slices.ContainsFunc(b.Entries, func(e Entry) bool { return e.Key == "max" }) {
		return b
	}
	return b.Set("min", 1)
}

// YAML returns the text of the evaluation file. app and data are the names of the files beside it.
func (e *Evaluation) YAML(app, data string) string {
	root := new(Block).Set("app", app).Set("data", data)
	if e.Trials > 1 {
		root.Set("trials", e.Trials)
	}
	var metrics []*Block
	for _, m := range e.metrics {
		metrics = append(metrics, e.block(m))
	}
	if len(metrics) == 0 {
		latency := &Block{Inline: true}
		metrics = append(metrics, latency.Set("type", "latency"))
	}
	root.Set("metrics", metrics)
	if len(e.Variants) > 1 {
		root.Set("variants", e.Variants)
	}
	text, _ := yaml.Dump(encode(root), yaml.WithV3Defaults(), yaml.WithIndent(2), yaml.WithLineWidth(maxLineWidth)) // never an error
	var b strings.Builder
	for _, line := range e.Comments {
		fmt.Fprintf(&b, "# %s\n", OneLine(line))
	}
	b.Write(text)
	return b.String()
}

// Lines returns the rows as JSON lines. Call YAML before: it adds columns.
func (e *Evaluation) Lines() string {
	var b strings.Builder
	for _, row := range e.Rows {
		line, _ := json.Marshal(row) // rows are made of texts, lists of texts and truth values
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// Practice declares the model that answers without a key, and a judge that finds everything good, so that a converted evaluation can
// be tried at once. labels are the sets of labels of its judges.
func (a *App) Practice(ids *IDs, judge string, labels [][]string) {
	AttachMock(a, ids)
	if judge == "" {
		return
	}
	mock := ids.New("practice_judge", "practice_judge")
	var rules []*Block
	for _, set := range labels {
		quoted, _ := json.Marshal(set[0])
		first := &Block{Inline: true}
		match := fmt.Sprintf(`"labels":\s*\[[^\]]*%s`, regexp.QuoteMeta(string(quoted)))
		rules = append(rules, first.Set("match", match).Set("text", fmt.Sprintf(`{"reason": "simulated", "label": %s}`, quoted)))
	}
	last := &Block{Inline: true}
	rules = append(rules, last.Set("text", `{"reason": "simulated", "score": 1}`))
	for _, m := range a.Models {
		for i, entry := range m.Entries {
			if entry.Key == "offline" && m.Entries[1].Value == judge {
				m.Entries[i].Value = mock
			}
		}
	}
	a.Models = append(a.Models, new(Block).Set("type", "Model").Set("id", mock).Set("provider", "mock").
		Note("Finds everything good while there is no key.").Set("rules", rules))
}

// ModelFor returns the id of a model by its name at a provider. parameters may be nil.
func (a *App) ModelFor(ids *IDs, provider, name string, parameters *Block) (id string, known bool) {
	b, known := NewModel(ids.New(cmp.Or(name, provider), "assistant"), cmp.Or(name, SuggestedModel(provider)))
	switch provider {
	case "":
	case "openai", "azure-openai":
		b.Entries[2] = Entry{Key: "provider", Value: provider, Note: b.Entries[2].Note}
		if known = true; provider == "azure-openai" {
			b.Entries[2].Note = "Needs AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY."
		}
	default:
		known = b.SetProvider(provider)
	}
	if provider == "groq" && len(a.Auths) == 0 {
		a.Auths = append(a.Auths, GroqAuth())
	}
	if parameters != nil && len(parameters.Entries) > 0 {
		b.Set("inference_params", parameters)
	}
	a.Models = append(a.Models, b)
	id, _ = b.Entries[1].Value.(string)
	return id, known
}
