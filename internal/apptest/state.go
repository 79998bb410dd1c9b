package apptest

import (
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// columnsOf returns the columns of each table, by the names of the tables: of its rows, and of what mocks insert and set.
func columnsOf(mocks []*spec.ToolMock, state []mockstate.Tables) map[string][]string {
	columns := map[string][]string{}
	add := func(table string, row map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(row)) {
			if !slices.Contains(columns[table], name) {
				columns[table] = append(columns[table], name)
			}
		}
	}
	for _, tables := range state {
		for name, rows := range tables {
			columns[name] = append(columns[name], []string{}...)
			for _, r := range rows {
				add(name, r)
			}
		}
	}
	for _, m := range NonNil(mocks) {
		if _, known := columns[m.Table]; known {
			add(m.Table, m.Insert)
			add(m.Table, m.Set)
		}
	}
	return columns
}

// checkTable checks what the mock of a tool reads and changes in a table.
func (c *checker) checkTable(m *spec.ToolMock, tools []spec.Tool, mocks []*spec.ToolMock, state []mockstate.Tables) {
	if m.Table == "" {
		for _, key := range []string{"where", "set", "insert", "remove"} {
			if field, ok := m.Position().Lookup(key); ok && m.Position().Complete("table") {
				c.list.Add(ruleInvalid.At(field.Key, "%s needs a table", key).WithHint("add table: with the name of a table of the state"))
			}
		}
		return
	}
	columns := columnsOf(mocks, state)
	c.checkID(SpanOf(m, "table"), "table of the state", m.Table, slices.Sorted(maps.Keys(columns)))
	_, selects := m.Position().Lookup("where")
	_, inserts := m.Position().Lookup("insert")
	switch {
	case !m.Position().Complete("where", "insert", "set", "remove", "error"):
		return
	case !selects && !inserts:
		c.list.Add(ruleInvalid.At(SpanOf(m, "table"), "the mock does nothing with its table").WithHint("add where: {} for all rows, or insert"))
	case !selects && (m.Set != nil || m.Remove):
		c.list.Add(ruleInvalid.At(SpanOf(m, "table"), "set and remove need where").WithHint("write where: {} for all rows"))
	case m.Error != "" && (m.Set != nil || m.Remove || inserts):
		c.list.Add(ruleInvalid.At(SpanOf(m, "error"), "a call that fails does not change its table"))
	}
	c.checkColumns(m, "where", m.Where, columns[m.Table])
	c.checkReferences(m, tools, columns[m.Table])
}

// checkColumns reports columns that no row of a table can have. A table without rows can have any.
func (c *checker) checkColumns(n spec.Node, key string, where map[string]any, columns []string) {
	for _, name := range slices.Sorted(maps.Keys(where)) {
		if len(columns) > 0 {
			c.checkID(n.Position().Field(key).Field(name).Key, "column of the table", name, columns)
		}
	}
}

// checkReferences reports references of a mock to unknown arguments and columns.
func (c *checker) checkReferences(m *spec.ToolMock, tools []spec.Tool, columns []string) {
	i := slices.IndexFunc(tools, func(t spec.Tool) bool { return t.EntityID() == m.ID })
	if i < 0 {
		return
	}
	var arguments []string
	for _, v := range tools[i].Arguments() {
		arguments = append(arguments, v.ID)
	}
	for key, v := range map[string]any{"where": m.Where, "set": m.Set, "insert": m.Insert, "result": m.Result} {
		for _, r := range mockstate.References(v) {
			place := SpanOf(m, key)
			switch {
			case r.Name == "row" && r.Column != "" && len(columns) > 0:
				c.checkID(place, "column of the table", r.Column, columns)
			case r.Name == "row" || r.Name == "rows" && r.Column == "":
			case r.Column != "":
				c.list.Add(ruleInvalid.At(place, "$%s.%s is no value: only $row has columns", r.Name, r.Column))
			case !slices.Contains(arguments, r.Name):
				d := ruleUnknown.At(place, "tool %s has no argument %q", m.ID, r.Name)
				if len(arguments) > 0 && diag.Nearest(r.Name, arguments) == "" {
					d = d.WithHint("its arguments: %s", strings.Join(arguments, ", "))
				}
				c.list.Add(d.WithNearest(r.Name, arguments))
			}
		}
	}
}

// checkRows checks assertions on tables.
func (c *checker) checkRows(assertions []*spec.RowAssertion, state ...mockstate.Tables) {
	columns := columnsOf(nil, state)
	for _, a := range NonNil(assertions) {
		c.checkID(SpanOf(a, "table"), "table of the state", a.Table, slices.Sorted(maps.Keys(columns)))
	}
}

// CheckChecks checks the checks of a simulated user of a flow, with the mocks of tools and the tables of the conversation.
func CheckChecks(app *spec.Application, flow *spec.Flow, checks *spec.Checks, mocks []*spec.ToolMock, state ...mockstate.Tables) diag.List {
	c := &checker{app: app}
	c.checkConditions(checks.Expect, flow)
	c.checkCalls(checks, checks.Calls, checks.CallOrder)
	c.checkRows(checks.State, state...)
	tables := mockstate.New(state...)
	for _, e := range NonNil(checks.Effects) {
		c.checkEffect(e, mocks, tables)
	}
	return c.list
}

// checkEffect makes a call of the effects that are expected, and reports one that the mocks cannot answer.
func (c *checker) checkEffect(e *spec.EffectCall, mocks []*spec.ToolMock, tables *mockstate.State) {
	tools := allTools(c.app)
	c.checkID(SpanOf(e, "id"), "tool", e.ID, spec.IDs(tools))
	i := slices.IndexFunc(tools, func(t spec.Tool) bool { return t.EntityID() == e.ID })
	if i < 0 || !e.Position().Complete("arguments") {
		return
	}
	before := len(c.list)
	var ids []string
	for _, v := range tools[i].Arguments() {
		ids = append(ids, v.ID)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Arguments)) {
		c.checkID(e.Position().Field("arguments").Field(name).Key, "argument of tool "+e.ID, name, ids)
	}
	own := slices.DeleteFunc(NonNil(mocks), func(m *spec.ToolMock) bool { return m.ID != e.ID })
	switch changes := slices.ContainsFunc(own, func(m *spec.ToolMock) bool { return m.Set != nil || m.Insert != nil || m.Remove }); {
	case len(c.list) > before:
	case !changes:
		c.list.Add(ruleInvalid.At(SpanOf(e, "id"), "no mock of tool %s changes a table", e.ID).WithHint("add one under tools, with table and set, insert or remove"))
	default:
		if _, err := tables.Call(own, e.Arguments); err != nil {
			c.list.Add(ruleInvalid.At(SpanOf(e, "id"), "this call of tool %s fails: %s", e.ID, err))
		}
	}
}
