package diag

import (
	"io"
	"net/url"
	"path/filepath"

	"github.com/qtype-dev/qtype/spec/source"
)

// Tool describes the program in a SARIF log.
type Tool struct {
	Version string // may be empty
	Rules   []Rule // all rules of the program
}

// The parts of a SARIF 2.1.0 log that are used, under their names there.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string       `json:"id"`
		Short   sarifMessage `json:"shortDescription"`
		Full    sarifMessage `json:"fullDescription"`
		Default sarifLevel   `json:"defaultConfiguration"`
	}
	sarifLevel struct {
		Level Severity `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex *int            `json:"ruleIndex,omitempty"`
		Level     Severity        `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
		Related   []sarifLocation `json:"relatedLocations,omitempty"`
		Fixes     []sarifFix      `json:"fixes,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
		Message  *sarifMessage `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
		EndLine     int `json:"endLine"`
		EndColumn   int `json:"endColumn"`
	}
	sarifFix struct {
		Description sarifMessage  `json:"description"`
		Changes     []sarifChange `json:"artifactChanges"`
	}
	sarifChange struct {
		Artifact     sarifArtifact      `json:"artifactLocation"`
		Replacements []sarifReplacement `json:"replacements"`
	}
	sarifReplacement struct {
		Deleted  *sarifRegion `json:"deletedRegion"`
		Inserted sarifMessage `json:"insertedContent"`
	}
)

// SARIF prints the list as a SARIF 2.1.0 log with one run.
func SARIF(w io.Writer, list List, tool Tool) error {
	driver := sarifDriver{Name: "qtype", Version: tool.Version, Rules: make([]sarifRule, len(tool.Rules))}
	index := make(map[string]int, len(tool.Rules))
	for i, r := range tool.Rules {
		index[r.Code] = i
		driver.Rules[i] = sarifRule{
			ID: r.Code, Short: sarifMessage{r.Title}, Full: sarifMessage{r.Doc}, Default: sarifLevel{r.Severity},
		}
	}
	run := sarifRun{Tool: sarifTool{driver}, ColumnKind: "unicodeCodePoints", Results: make([]sarifResult, len(list))}
	for i, d := range list {
		run.Results[i] = sarifResultOf(d)
		if at, known := index[d.Code]; known {
			run.Results[i].RuleIndex = &at
		}
	}
	return encode(w, sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0", Runs: []sarifRun{run},
	})
}

func sarifResultOf(d Diagnostic) sarifResult {
	result := sarifResult{RuleID: d.Code, Level: d.Severity, Message: sarifMessage{d.summary()}}
	if d.Span.File == nil {
		return result
	}
	position := sarifPlace(d.Span)
	result.Locations = []sarifLocation{{Physical: position}}
	for _, r := range d.Related {
		if r.Span.File != nil {
			result.Related = append(result.Related, sarifLocation{sarifPlace(r.Span), &sarifMessage{escapeControl(r.Message)}})
		}
	}
	for _, at := range d.Span.Includes() {
		result.Related = append(result.Related, sarifLocation{sarifPlace(at), &sarifMessage{"included from here"}})
	}
	result.Fixes = sarifFixes(d)
	return result
}

// sarifFixes returns the fixes, else the suggestion: SARIF treats both as
// proposals.
func sarifFixes(d Diagnostic) []sarifFix {
	fixes, description := d.Fixes, "apply the fix"
	if len(fixes) == 0 && d.Suggestion != "" {
		fixes = []Fix{{d.Span, d.Suggestion}}
	}
	if d.Suggestion != "" {
		description = "replace with " + escapeControl(d.Suggestion)
	}
	var changes []sarifChange
	for _, f := range fixes {
		if position := sarifPlace(f.Span); position.Region != nil {
			changes = append(changes, sarifChange{position.Artifact, []sarifReplacement{
				{Deleted: position.Region, Inserted: sarifMessage{f.NewText}}}})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return []sarifFix{{Description: sarifMessage{description}, Changes: changes}}
}

func sarifPlace(s source.Span) sarifPhysical {
	uri := s.File.Path
	if u, err := url.Parse(uri); err != nil || u.Scheme == "" || len(u.Scheme) == 1 {
		uri = (&url.URL{Path: filepath.ToSlash(uri)}).String()
	}
	position := sarifPhysical{Artifact: sarifArtifact{uri}}
	if s.Start.Line > 0 {
		position.Region = &sarifRegion{s.Start.Line, s.Start.Column, s.End.Line, s.End.Column}
	}
	return position
}
