package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Signature sets how many variables of which types a type of step reads and
// writes. It is declared by the tags `in` and `out` of the embedded StepBase:
//
//	in:"question: text; QT324 exactly 1; QT326 text|ChatMessage"
//
// Before the first semicolon is a list of variables that fit, for examples. Each
// further part is a demand: the code of its diagnostic, then a count (exactly N, at
// least N), the types that every variable may have, or the type that at least
// one must have (one T). A step that accepts several kinds of indexes puts the
// kind before the part: "VectorIndex: chunk: RAGChunk; QT365 exactly 1; DocumentIndex: …".
type Signature struct {
	Index   string   // the kind of index that it holds for; empty for all
	Inputs  string   // variables that fit, such as "question: text"; empty for none
	Outputs string   // likewise
	Demands []Demand // in the order of the tags
}

// Demand is one requirement on the variables of one side of a step.
type Demand struct {
	Code    string   // the code of the diagnostic; empty where none is assigned yet
	Outputs bool     // it is about the outputs, not the inputs
	Min     int      // the fewest variables; for a demand on the count
	Max     int      // the most variables; 0 for no bound
	Types   []string // the types that fit: a name, list[name], or list for any list; empty for a demand on the count
	One     bool     // one variable of the type is enough
}

// Signatures are the signatures of a type of step. Only a step that accepts several
// kinds of indexes has more than one; most without demands have none.
func Signatures(s Step) ([]Signature, error) {
	var all []Signature
	for side, tag := range []string{"in", "out"} {
		index := ""
		for part := range strings.SplitSeq(stepTag(s, tag), ";") {
			part = strings.TrimSpace(part)
			if part == "" {
				continue
			}
			if name, rest, ok := strings.Cut(part, ": "); ok && isIndexKind(name) {
				index, part = name, rest
			}
			at := signatureFor(&all, index)
			if err := at.add(part, side == 1); err != nil {
				return nil, fmt.Errorf("%s: tag %s: %w", TypeName(s), tag, err)
			}
		}
	}
	return all, nil
}

// isIndexKind reports whether a name is a `type` of the union of indexes.
func isIndexKind(name string) bool {
	return slices.ContainsFunc(indexCases(), func(c Case) bool { return c.Tag == name })
}

// signatureFor finds the signature of one kind of index, or adds it.
func signatureFor(all *[]Signature, index string) *Signature {
	for i := range *all {
		if (*all)[i].Index == index {
			return &(*all)[i]
		}
	}
	*all = append(*all, Signature{Index: index})
	return &(*all)[len(*all)-1]
}

// add adds one part of a tag: the fitting variables or a demand.
func (s *Signature) add(part string, outputs bool) error {
	example := &s.Inputs
	if outputs {
		example = &s.Outputs
	}
	if strings.Contains(part, ": ") {
		*example = part
		return nil
	}
	d := Demand{Outputs: outputs}
	if code, rest, ok := strings.Cut(part, " "); ok && strings.HasPrefix(code, "QT") {
		d.Code, part = code, rest
	}
	var err error
	switch words := strings.Fields(part); {
	case len(words) == 2 && words[0] == "exactly":
		d.Min, err = strconv.Atoi(words[1])
		d.Max = d.Min
	case len(words) == 3 && words[0] == "at" && words[1] == "least":
		d.Min, err = strconv.Atoi(words[2])
	case len(words) == 2 && words[0] == "one":
		d.Types, d.One = []string{words[1]}, true
	case len(words) == 1:
		d.Types = strings.Split(words[0], "|")
	default:
		return fmt.Errorf("%q is no demand", part)
	}
	s.Demands = append(s.Demands, d)
	return err
}

// IsCount reports whether the demand is about the number of variables.
func (d Demand) IsCount() bool { return len(d.Types) == 0 }

// Allows reports whether n variables are as many as a demand on the count wants.
func (d Demand) Allows(n int) bool { return n >= d.Min && (d.Max == 0 || n <= d.Max) }

// Fits reports whether a type is one that the demand accepts. Whether the variable
// is optional does not matter.
func (d Demand) Fits(t Type) bool {
	for _, name := range d.Types {
		elem, isList := strings.CutPrefix(name, "list[")
		switch {
		case name == "list" && t.IsList(),
			isList && t.IsListOf(strings.TrimSuffix(elem, "]")),
			!isList && t.Is(name):
			return true
		}
	}
	return false
}

// String is the demand in words: "exactly 1 output", "text or ChatMessage".
func (d Demand) String() string {
	if !d.IsCount() {
		if len(d.Types) == 1 && d.Types[0] == "list" {
			return "a list"
		}
		return strings.Join(d.Types, " or ")
	}
	quantifier := "exactly"
	if d.Max == 0 {
		quantifier = "at least"
	}
	side := d.Side()
	if d.Min != 1 {
		side += "s"
	}
	return fmt.Sprintf("%s %d %s", quantifier, d.Min, side)
}

// Side is the singular of the key in the document: input or output.
func (d Demand) Side() string {
	if d.Outputs {
		return "output"
	}
	return "input"
}
