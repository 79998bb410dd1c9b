package duckdb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// allowed returns the table functions that a query may call: none of them reaches anything but the
// database.
func allowed() []string {
	return []string{
		"unnest", "range", "generate_series", "repeat", "repeat_row", "json_each", "json_tree", "seq_scan", "summary", "histogram", "histogram_values",
		"duckdb_columns", "duckdb_constraints", "duckdb_databases", "duckdb_dependencies", "duckdb_functions", "duckdb_indexes", "duckdb_keywords",
		"duckdb_schemas", "duckdb_sequences", "duckdb_tables", "duckdb_types", "duckdb_views", "pragma_database_size", "pragma_show", "pragma_storage_info",
		"pragma_table_info", "pragma_version", "icu_calendar_names", "pg_timezone_names", "test_all_types",
	}
}

// FunctionError is the error of a query with a function that may reach something other than the database.
type FunctionError struct {
	Name string
}

// Error returns the name of the function.
func (e *FunctionError) Error() string {
	return "the table function " + e.Name + " is not allowed: a query reads the database of its connection"
}

// checkSyntax returns an error if a query is not one reading statement, or calls a table function that is
// neither allowed nor a macro of the database. The plan has the calls of macros.
func (p *process) checkSyntax(query string) error {
	var tree, macros []byte
	script := "SELECT '" + p.mark + " tree ' || CAST(json_serialize_sql(" + encoded(query) + ") AS VARCHAR);\n" +
		"SELECT '" + p.mark + " macros ' || CAST(to_json(coalesce(list(function_name), [])) AS VARCHAR) FROM duckdb_functions() WHERE function_type = 'table_macro' AND NOT internal" +
		" AND function_name NOT IN (SELECT function_name FROM duckdb_functions() WHERE internal);"
	err := p.run(script, func(line []byte) {
		if text, ok := bytes.CutPrefix(line, []byte(p.mark+" tree ")); ok {
			tree = bytes.Clone(text)
		}
		if text, ok := bytes.CutPrefix(line, []byte(p.mark+" macros ")); ok {
			macros = bytes.Clone(text)
		}
	})
	if err != nil {
		return err
	}
	own := []string{}
	var parsed struct {
		Error      bool            `json:"error"`
		Message    string          `json:"error_message"`
		Statements json.RawMessage `json:"statements"`
	}
	if errors.Join(json.Unmarshal(tree, &parsed), json.Unmarshal(macros, &own)) != nil {
		return errors.New("no syntax tree of the query from DuckDB")
	}
	if parsed.Error {
		return errors.New(message(parsed.Message))
	}
	var statements []any
	if err := json.Unmarshal(parsed.Statements, &statements); err != nil || len(statements) != 1 {
		return errors.New("a query is one statement")
	}
	return checkFunctions(statements[0], append(own, allowed()...))
}

// checkFunctions returns an error for the first table function of a syntax tree that is not in the list.
func checkFunctions(node any, list []string) error {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			if err := checkFunctions(item, list); err != nil {
				return err
			}
		}
	case map[string]any:
		if node["type"] == "TABLE_FUNCTION" {
			call, _ := node["function"].(map[string]any)
			if name, _ := call["function_name"].(string); !slices.Contains(list, strings.ToLower(name)) {
				return &FunctionError{name}
			}
		}
		for _, item := range node {
			if err := checkFunctions(item, list); err != nil {
				return err
			}
		}
	}
	return nil
}

// describe sets the values of a query, and returns its columns. The plan has the functions that
// views and macros of the database call.
func (p *process) describe(query string, values []string) ([]column, error) {
	var script strings.Builder
	for i, v := range values {
		fmt.Fprintf(&script, "SET VARIABLE %s%d = %s;\n", Variable, i+1, v)
	}
	call := "query(" + encoded(query) + ")"
	script.WriteString("EXPLAIN (FORMAT json) FROM " + call + ";\nSELECT '';\n" + // the plan has no end of line
		"SELECT '" + p.mark + " column ' || CAST(json_array(column_name, column_type) AS VARCHAR) FROM (DESCRIBE FROM " + call + ");")
	var plan bytes.Buffer
	var columns []column
	var wrong error
	err := p.run(script.String(), func(line []byte) {
		text, isColumn := bytes.CutPrefix(line, []byte(p.mark+" column "))
		if !isColumn {
			plan.Write(line)
			plan.WriteByte('\n')
			return
		}
		var c [2]string
		if err := json.Unmarshal(text, &c); err != nil {
			wrong = err
		}
		columns = append(columns, column{name: c[0], typ: parseType(c[1])})
	})
	switch {
	case err != nil:
		return nil, err
	case wrong != nil || len(columns) == 0:
		return nil, errors.New("no columns of the query from DuckDB")
	}
	return columns, checkPlan(plan.Bytes())
}

// checkPlan returns an error if a plan, which follows other lines, has a function that is not allowed.
func checkPlan(output []byte) error {
	from := bytes.Index(output, []byte("\n[\n"))
	var plan []operator
	if from < 0 || json.NewDecoder(bytes.NewReader(output[from:])).Decode(&plan) != nil || len(plan) == 0 {
		return errors.New("no plan of the query from DuckDB")
	}
	return checkOperators(plan)
}

// operator is a part of a plan.
type operator struct {
	Name     string     `json:"name"`
	Children []operator `json:"children"`
	Extra    struct {
		Function any `json:"Function"`
	} `json:"extra_info"`
}

func checkOperators(plan []operator) error {
	for _, o := range plan {
		if name, ok := o.Extra.Function.(string); ok && !slices.Contains(allowed(), strings.ToLower(name)) {
			return &FunctionError{strings.ToLower(name)}
		}
		if err := checkOperators(o.Children); err != nil {
			return err
		}
	}
	return nil
}

// color matches a sequence that changes colors of a terminal.
var color = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;]*m`) })

// message returns the text of an error of DuckDB for the user: without the place: it is in a
// statement that the user did not write.
func message(text string) string {
	text = strings.TrimSpace(color().ReplaceAllString(text, ""))
	if i := strings.Index(text, "\nLINE "); i >= 0 {
		text = text[:i]
	}
	if i := strings.Index(text, "\nStack Trace:"); i >= 0 {
		text = text[:i]
	}
	text = strings.TrimSpace(text)
	switch {
	case strings.Contains(text, "Could not set lock on file"):
		return "another process has opened the file for writing: DuckDB opens a file either once for writing, or any number of times for reading"
	case strings.Contains(text, "Trying to read a database file with version number"):
		return "the file was written by a newer version of DuckDB: install that version of the program duckdb, or write the file with an older STORAGE_VERSION (" + firstLine(text) + ")"
	}
	return text
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(line, ".")
}
