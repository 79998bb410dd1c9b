// Package mockstate has the tables that mocks of tools read and change, so that an agent can act in a test or an
// evaluation, and what it has done can be compared with what it should have done.
package mockstate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// Tables are lists of rows, each with values by column, by the names of the tables.
type Tables = map[string][]map[string]any

// State is a set of tables. It is safe for concurrent use.
type State struct {
	mu     sync.Mutex
	tables Tables
}

// New returns a state with copies of tables; those of later layers replace earlier ones with the same names.
func New(layers ...Tables) *State {
	s := &State{tables: Tables{}}
	for _, tables := range layers {
		for name, rows := range tables {
			copied := make([]map[string]any, 0, len(rows))
			for _, r := range rows {
				c, _ := Plain(r).(map[string]any)
				copied = append(copied, c)
			}
			s.tables[name] = copied
		}
	}
	return s
}

// CallError is why a mock answers a call with an error.
type CallError struct{ Message string }

// Error returns the message.
func (e *CallError) Error() string { return e.Message }

// Call answers a call by the first mock that fits the arguments and the state. An error is a *CallError.
func (s *State) Call(mocks []*spec.ToolMock, args map[string]any) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range mocks {
		if !has(args, m.Arguments) {
			continue
		}
		selected := s.selected(m, args)
		if m.Table != "" && len(m.Where) > 0 && len(selected) == 0 {
			continue
		}
		if m.Error != "" {
			return nil, &CallError{m.Error}
		}
		return s.answer(m, selected, args), nil
	}
	return nil, &CallError{"no mock of the tool has these arguments"}
}

// selected returns the rows of a mock's table that a call selects.
func (s *State) selected(m *spec.ToolMock, args map[string]any) (rows []map[string]any) {
	if m.Table == "" || m.Where == nil {
		return nil
	}
	where, _ := filled(m.Where, args, nil).(map[string]any)
	for _, r := range s.tables[m.Table] {
		if has(r, where) {
			rows = append(rows, r)
		}
	}
	return rows
}

// answer changes the table as a mock says, and returns the result.
func (s *State) answer(m *spec.ToolMock, rows []map[string]any, args map[string]any) any {
	if m.Table == "" {
		return Plain(m.Result)
	}
	for _, r := range rows {
		for column, v := range m.Set {
			r[column] = filled(v, args, rows)
		}
	}
	if m.Remove {
		s.tables[m.Table] = slices.DeleteFunc(s.tables[m.Table], func(r map[string]any) bool {
			return slices.ContainsFunc(rows, func(o map[string]any) bool { return reflect.ValueOf(o).Pointer() == reflect.ValueOf(r).Pointer() })
		})
	}
	if m.Insert != nil {
		made, _ := filled(m.Insert, args, rows).(map[string]any)
		s.tables[m.Table] = append(s.tables[m.Table], made)
		rows = append(rows, made)
	}
	result := m.Result
	if _, given := m.Position().Lookup("result"); !given && result == nil {
		result = "$row"
	}
	return filled(result, args, rows)
}

// Count returns the number of rows of a table that have values.
func (s *State) Count(table string, where map[string]any) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.tables[table] {
		if has(r, where) {
			n++
		}
	}
	return n
}

// Rows returns the rows of a table as JSON.
func (s *State) Rows(table string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]string, 0, len(s.tables[table]))
	for _, r := range s.tables[table] {
		rows = append(rows, text(r))
	}
	return rows
}

// Differences returns what is not as in another state, a line for each row. The order of rows does not count.
func (s *State) Differences(want *State) (lines []string) {
	for _, table := range slices.Sorted(maps.Keys(s.tables)) {
		got, wanted := s.Rows(table), want.Rows(table)
		for _, row := range wanted {
			if i := slices.Index(got, row); i >= 0 {
				got = slices.Delete(got, i, i+1)
			} else {
				lines = append(lines, fmt.Sprintf("%s lacks %s", table, row))
			}
		}
		for _, row := range got {
			lines = append(lines, fmt.Sprintf("%s has %s", table, row))
		}
	}
	return lines
}

// Reference is what a text such as $number or $row.status stands for.
type Reference struct {
	Name   string // of an argument, or row or rows
	Column string // of the row; empty for the whole row
}

var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\$([A-Za-z_]\w*)(?:\.(\w+))?$`) })

// References returns the references in a value.
func References(v any) (all []Reference) {
	switch v := v.(type) {
	case string:
		if m := reference().FindStringSubmatch(v); m != nil {
			all = append(all, Reference{m[1], m[2]})
		}
	case []any:
		for _, item := range v {
			all = append(all, References(item)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, References(v[key])...)
		}
	}
	return all
}

// filled returns a copy of a value with its references replaced. An argument that a call lacks is nil.
func filled(v any, args map[string]any, rows []map[string]any) any {
	switch v := v.(type) {
	case string:
		if m := reference().FindStringSubmatch(v); m != nil {
			return Plain(resolve(Reference{m[1], m[2]}, args, rows))
		}
	case []any:
		made := make([]any, len(v))
		for i, item := range v {
			made[i] = filled(item, args, rows)
		}
		return made
	case map[string]any:
		made := make(map[string]any, len(v))
		for name, item := range v {
			made[name] = filled(item, args, rows)
		}
		return made
	}
	return Plain(v)
}

func resolve(r Reference, args map[string]any, rows []map[string]any) any {
	switch {
	case r.Name == "rows":
		return append([]map[string]any{}, rows...)
	case r.Name != "row":
		return args[r.Name]
	case len(rows) == 0:
		return nil
	case r.Column != "":
		return rows[0][r.Column]
	}
	return rows[0]
}

// has reports whether values are among others, by name, as JSON.
func has(all, want map[string]any) bool {
	for name, v := range want {
		given, ok := all[name]
		if !ok || !isSame(given, v) {
			return false
		}
	}
	return true
}

func isSame(a, b any) bool { return text(Plain(a)) == text(Plain(b)) }

// text returns a value as JSON; empty for one that cannot be encoded.
func text(v any) string {
	encoded, err := textfmt.CompactJSON(v)
	if err != nil {
		return ""
	}
	return string(encoded)
}

// Plain returns a copy of a value in the types of JSON; nil if it has none. Numbers are json.Number,
// and equal ones are equal texts.
func Plain(v any) (decoded any) {
	d := json.NewDecoder(strings.NewReader(text(v)))
	d.UseNumber()
	if d.Decode(&decoded) != nil {
		return nil
	}
	return canonical(decoded)
}

func canonical(v any) any {
	switch v := v.(type) {
	case json.Number:
		if _, err := v.Int64(); err != nil {
			f, _ := v.Float64()
			if whole := json.Number(strconv.FormatFloat(f, 'f', -1, 64)); math.Abs(f) < maxWhole && f == math.Trunc(f) {
				return whole
			}
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
	case []any:
		for i := range v {
			v[i] = canonical(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = canonical(v[name])
		}
	}
	return v
}

// maxWhole is from where on not all whole numbers are a float64.
const maxWhole = 1 << 53
