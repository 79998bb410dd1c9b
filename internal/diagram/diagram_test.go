package diagram

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/validate"
)

// documents returns the documents that the tests draw.
func documents(t *testing.T) map[string]*spec.Document {
	t.Helper()
	paths, err := filepath.Glob("../../examples/*/*.qtype.yaml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("found %v (%v)", paths, err)
	}
	all := map[string]*spec.Document{}
	for _, path := range append(paths, "testdata/everything.qtype.yaml") {
		result, diagnostics := loader.Load(t.Context(), path, loader.Options{})
		diagnostics.Add(validate.Check(result.Document)...)
		if err := diagnostics.Err(); err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(filepath.Dir(path))] = result.Document
	}
	return all
}

func writeDiagram(t *testing.T, doc *spec.Document, f Format) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, doc, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite_NoSecretsAndDeterministic(t *testing.T) {
	for name, doc := range documents(t) {
		for _, f := range []Format{Mermaid, SVG, HTML} {
			text := writeDiagram(t, doc, f)
			if strings.Contains(text, "secret") {
				t.Errorf("%s: %s contains a secret", name, f)
			}
			for range 3 {
				if writeDiagram(t, doc, f) != text {
					t.Errorf("%s: %s is not deterministic", name, f)
				}
			}
		}
	}
}

func TestWrite_RequiresApplication(t *testing.T) {
	if err := Write(io.Discard, &spec.Document{}, SVG); err == nil || !strings.Contains(err.Error(), "only an application") {
		t.Errorf("got %v", err)
	}
}

// TestMermaid_Links checks links such as those from InvokeFlow to its flow and from
// an agent to its model.
func TestMermaid_Links(t *testing.T) {
	text := writeDiagram(t, documents(t)["testdata"], Mermaid)
	for _, want := range []string{
		`FLOW_0_S5 -.->|"runs"| FLOW_1`, `FLOW_0_S3 -.->|"uses"| MODEL_ASSISTANT`, `FLOW_0_S3 -.->|"remembers"| MEM_CHAT_MEMORY` + "\n",
		`FLOW_0_S4 -.->|"remembers"| MEM_CHAT_MEMORY_2`, `TOOL_SUM_TOOL -.->|"runs"| FLOW_1`, `INDEX_DOCS -.->|"embeds with"| MODEL_EMBED`,
		`FLOW_0_S3 -.->|"traces"| TEL_TRACES`, `FLOW_0_S4 -->|"ans"| FLOW_0_S5`, `FLOW_1_S1 --> FLOW_1_S2`,
		`big #60;b#62;#34;app#34;#60;#47;b#62; #38; 漢字 #37;#37;#123;init#58; x#125;#37;#37;`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %s in\n%s", want, text)
		}
	}
	if strings.Count(text, "MODEL_EMBED([") != 1 || strings.Contains(text, "EMB_") {
		t.Errorf("the embedding model must be drawn once:\n%s", text)
	}
}

// Patterns of the lines of a flowchart.
var (
	nodeLine  = regexp.MustCompile(`^([A-Z0-9_]+)(@\{ shape: [a-z-]+, label: "[^"\\]*" \}|\(\("[^"]*"\)\)|\(\["[^"]*"\]\)|\[\("[^"]*"\)\]|\[\["[^"]*"\]\]|\{\{"[^"]*"\}\}|\["[^"]*"\])$`)
	edgeLine  = regexp.MustCompile(`^([A-Z0-9_]+) (?:-->|-->\|"[^"|]*"\||-\.->\|"[^"|]*"\|) ([A-Z0-9_]+)$`)
	groupLine = regexp.MustCompile(`^subgraph ([A-Z0-9_]+)\["[^"]*"\]$`)
	otherLine = regexp.MustCompile(`^(end|direction (TB|LR)|classDef \w+ \S+|class [A-Z0-9_]+ \w+)$`)
)

// TestMermaid_Grammar checks the syntax of every line, that groups are closed, that
// ids are unique, and that edges connect existing nodes.
func TestMermaid_Grammar(t *testing.T) {
	for name, doc := range documents(t) {
		checkMermaid(t, name, writeDiagram(t, doc, Mermaid))
	}
}

func checkMermaid(t interface{ Errorf(string, ...any) }, name, text string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != "flowchart TD" {
		t.Errorf("%s begins with %q", name, lines[0])
	}
	depth, ids := 0, map[string]bool{}
	var joined []string
	for _, line := range lines[1:] {
		line = strings.TrimSpace(line)
		declared := ""
		if m := nodeLine.FindStringSubmatch(line); m != nil {
			declared = m[1]
		} else if m := groupLine.FindStringSubmatch(line); m != nil {
			declared = m[1]
			depth++
		} else if m := edgeLine.FindStringSubmatch(line); m != nil {
			joined = append(joined, m[1], m[2])
		} else if !otherLine.MatchString(line) {
			t.Errorf("%s: unknown syntax: %s", name, line)
		}
		if line == "end" {
			depth--
		}
		if declared != "" && ids[declared] {
			t.Errorf("%s: duplicate id %s", name, declared)
		}
		ids[declared] = true
	}
	for _, id := range joined {
		if !ids[id] {
			t.Errorf("%s: an edge leads to unknown node %s", name, id)
		}
	}
	if depth != 0 {
		t.Errorf("%s: %d groups are not closed", name, depth)
	}
}

// TestMermaid_Parses parses the output with Mermaid. QTYPE_MERMAID is a
// node_modules folder with mermaid and jsdom.
func TestMermaid_Parses(t *testing.T) {
	modules := os.Getenv("QTYPE_MERMAID")
	if modules == "" {
		t.Skip("set QTYPE_MERMAID to a node_modules folder with mermaid and jsdom")
	}
	args := []string{"testdata/parse.mjs", modules}
	for name, doc := range documents(t) {
		file := filepath.Join(t.TempDir(), name+".mmd")
		if err := os.WriteFile(file, []byte(writeDiagram(t, doc, Mermaid)), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	out, err := testkit.Command(t, "node", args...).CombinedOutput()
	if want := strings.Repeat("flowchart-v2\n", len(args)-2); err != nil || string(out) != want {
		t.Errorf("%v: %s", err, out)
	}
}

// rect is a rectangle of the picture.
type rect struct {
	name       string
	x, y, w, h float64
}

// checkSVG checks that an SVG is well-formed, that boxes overlap only if one
// contains the other, and that texts are within their boxes and everything within
// the picture.
func checkSVG(t interface{ Errorf(string, ...any) }, name, picture string) {
	var boxes, free []rect
	var sheet, current rect
	var last xml.StartElement
	inBox := false
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		switch e := token.(type) {
		case xml.StartElement:
			last = e
			switch e.Name.Local {
			case "svg":
				sheet = rect{w: numberAttribute(e, "width"), h: numberAttribute(e, "height")}
			case "g":
				inBox = false
			case "rect":
				if attribute(e, "class") == "paper" {
					continue
				}
				current = rect{attribute(e, "x") + "," + attribute(e, "y"), numberAttribute(e, "x"), numberAttribute(e, "y"), numberAttribute(e, "width"), numberAttribute(e, "height")}
				boxes = append(boxes, current)
				inBox = true
			}
		case xml.EndElement:
			if e.Name.Local == "g" {
				inBox = false
			}
		case xml.CharData:
			if last.Name.Local != "text" || strings.TrimSpace(string(e)) == "" {
				continue
			}
			size := numberAttribute(last, "font-size")
			x, y := numberAttribute(last, "x"), numberAttribute(last, "y")
			r := rect{string(e), x, y - size, textWidth(string(e), size, attribute(last, "font-weight") != ""), size * 1.2}
			if size < 11 {
				t.Errorf("%s: %q is only %v pixels high", name, r.name, size)
			}
			if inBox && !current.contains(r) {
				t.Errorf("%s: the text %q (%v wide at %v) leaves its box %+v", name, r.name, r.w, r.x, current)
			}
			if !inBox {
				free = append(free, r)
			}
			if !sheet.contains(r) {
				t.Errorf("%s: the text %q leaves the picture", name, r.name)
			}
		}
	}
	for i, a := range boxes {
		if !sheet.contains(a) {
			t.Errorf("%s: the box %v leaves the picture", name, a)
		}
		for _, r := range free {
			if a.overlaps(r) && !a.contains(r) {
				t.Errorf("%s: the text %+v crosses the box %+v", name, r, a)
			}
		}
		for _, b := range boxes[i+1:] {
			if a.overlaps(b) && !a.contains(b) && !b.contains(a) {
				t.Errorf("%s: the boxes %+v and %+v overlap", name, a, b)
			}
		}
	}
}

func (r rect) contains(s rect) bool {
	const slack = 0.2 // for rounding to a tenth
	return s.x >= r.x-slack && s.y >= r.y-slack && s.x+s.w <= r.x+r.w+slack && s.y+s.h <= r.y+r.h+slack
}

func (r rect) overlaps(s rect) bool {
	return s.x < r.x+r.w && r.x < s.x+s.w && s.y < r.y+r.h && r.y < s.y+s.h
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func numberAttribute(e xml.StartElement, name string) float64 {
	n, _ := strconv.ParseFloat(attribute(e, name), 64)
	return n
}

// TestSVG_Colours checks that viewers that know no variables of CSS, or no style sheets, draw nothing in black.
func TestSVG_Colours(t *testing.T) {
	for name, doc := range documents(t) {
		picture := writeDiagram(t, doc, SVG)
		if strings.Contains(picture, "var(") || strings.Contains(picture, ": --") || strings.Contains(picture, ": ;") {
			t.Errorf("%s: the style sheet has variables or no colours", name)
		}
		for d := xml.NewDecoder(strings.NewReader(picture)); ; {
			token, err := d.Token()
			if err != nil {
				break // checkSVG reports it
			}
			e, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			switch fill, stroke := attribute(e, "fill"), attribute(e, "stroke"); {
			case (e.Name.Local == "svg" || e.Name.Local == "rect") && !strings.HasPrefix(fill, "#"),
				attribute(e, "class") == "line" && (fill != "none" || !strings.HasPrefix(stroke, "#")):
				t.Errorf("%s: %s %q has fill %q, stroke %q", name, e.Name.Local, attribute(e, "class"), fill, stroke)
			}
		}
	}
}

func TestSVG_Layout(t *testing.T) {
	for name, doc := range documents(t) {
		checkSVG(t, name, writeDiagram(t, doc, SVG))
	}
}

func TestHTML(t *testing.T) {
	page := writeDiagram(t, documents(t)["testdata"], HTML)
	if strings.Contains(page, "<b>") || !strings.Contains(page, "<svg ") || !strings.Contains(page, "flowchart TD") || strings.Contains(page, "<script") {
		t.Errorf("unexpected page:\n%.2000s", page)
	}
}

// TestWrite_AnyApplication draws arbitrary applications and checks the pictures.
func TestWrite_AnyApplication(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := &spec.Document{Application: drawApplication(t)}
		var picture, chart strings.Builder
		if err := Write(&picture, doc, SVG); err != nil {
			t.Fatal(err)
		}
		if err := Write(&chart, doc, Mermaid); err != nil {
			t.Fatal(err)
		}
		checkSVG(t, "picture", picture.String())
		checkMermaid(t, "chart", chart.String())
	})
}

func drawApplication(t *rapid.T) *spec.Application {
	id := rapid.OneOf(rapid.StringMatching(`[a-z_-]{1,12}`), rapid.StringN(1, 40, 80), rapid.StringMatching(`[A-Za-z ]{30,90}`))
	app := &spec.Application{ID: id.Draw(t, "id"), Description: rapid.String().Draw(t, "description")}
	for range rapid.IntRange(0, 6).Draw(t, "models") {
		m := &spec.Model{ID: id.Draw(t, "id"), Provider: "openai", ModelID: id.Draw(t, "name")}
		if n := len(app.Models); n > 0 && rapid.Bool().Draw(t, "offline") {
			m.Offline = spec.Ref[spec.ModelEntity]{ID: "x", To: app.Models[n-1]}
		}
		app.Models = append(app.Models, m)
	}
	for range rapid.IntRange(0, 3).Draw(t, "memories") {
		app.Memories = append(app.Memories, &spec.Memory{ID: id.Draw(t, "id"), TokenLimit: rapid.Int().Draw(t, "limit")})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "flows") {
		app.Flows = append(app.Flows, drawFlow(t, app, i, id))
	}
	return app
}

func drawFlow(t *rapid.T, app *spec.Application, number int, id *rapid.Generator[string]) *spec.Flow {
	f := &spec.Flow{ID: id.Draw(t, "id")}
	for i := range rapid.IntRange(1, 9).Draw(t, "variables") {
		f.Variables = append(f.Variables, &spec.Variable{ID: fmt.Sprintf("%s%d", id.Draw(t, "id"), i)})
	}
	some := func(limit int) []spec.Ref[*spec.Variable] {
		var refs []spec.Ref[*spec.Variable]
		for _, v := range rapid.SliceOfNDistinct(rapid.SampledFrom(f.Variables), 0, min(limit, len(f.Variables)), rapid.ID[*spec.Variable]).Draw(t, "some") {
			refs = append(refs, spec.Ref[*spec.Variable]{ID: v.ID, To: v})
		}
		return refs
	}
	f.Inputs, f.Outputs = some(9), some(9)
	for range rapid.IntRange(0, 8).Draw(t, "steps") {
		base := spec.StepBase{ID: id.Draw(t, "id"), Inputs: some(4), Outputs: some(9)}
		var s spec.Step = &spec.Echo{StepBase: base}
		switch {
		case len(app.Models) > 0 && rapid.Bool().Draw(t, "calls model"):
			a := &spec.Agent{StepBase: base, Model: refTo(rapid.SampledFrom(app.Models).Draw(t, "model"))}
			if len(app.Memories) > 0 {
				a.Memory = refTo(rapid.SampledFrom(app.Memories).Draw(t, "memory"))
			}
			s = a
		case number > 0 && rapid.Bool().Draw(t, "runs flow"):
			s = &spec.InvokeFlow{StepBase: base, Flow: refTo(rapid.SampledFrom(app.Flows).Draw(t, "flow"))}
		}
		f.Steps = append(f.Steps, &spec.StepItem{Step: s})
	}
	return f
}

// refTo returns a linked reference to an entity.
func refTo[T spec.Entity](e T) spec.Ref[T] { return spec.Ref[T]{ID: e.EntityID(), To: e} }
