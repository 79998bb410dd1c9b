package diagram

import (
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/spec"
)

// kindStyle is how entities of a kind are drawn.
type kindStyle struct {
	kind   spec.Kind
	plural string                     // the heading above resources of the kind
	verb   string                     // the label of links to the kind; empty for "uses"
	prefix string                     // the start of Mermaid ids
	form   string                     // the Mermaid syntax of a node: its id and label
	icon   string                     // before the label
	notes  func(spec.Entity) []string // the lines below the id; nil for the type
}

// resourceStyles returns the styles of the kinds that steps use, in drawing order:
// those that most steps use first.
var resourceStyles = sync.OnceValue(func() []kindStyle {
	return []kindStyle{
		{spec.KindModel, "models", "", "MODEL_", `%s(["%s"])`, "🧠", modelNotes},
		{spec.KindMemory, "memories", "remembers", "MEM_", `%s[("%s")]`, "💬", func(e spec.Entity) []string { return []string{memoryNote(e.(*spec.Memory))} }},
		{spec.KindTool, "tools", "", "TOOL_", `%s["%s"]`, "⚡", toolNotes},
		{spec.KindIndex, "indexes", "", "INDEX_", `%s[("%s")]`, "🗂", nil},
		{spec.KindStore, "stores", "is kept in", "STORE_", `%s[("%s")]`, "🗄", func(e spec.Entity) []string { return []string{e.(*spec.Store).Type} }},
		{spec.KindAuth, "auths", "", "AUTH_", `%s{{"%s"}}`, "🔐", nil},
		{spec.KindSecretManager, "secret managers", "", "SECRETS_", `%s{{"%s"}}`, "🔑", nil},
		{spec.KindTelemetry, "telemetry", "", "TEL_", `%s[["%s"]]`, "📊", func(e spec.Entity) []string { return []string{e.(*spec.Telemetry).Provider} }},
	}
})

// styleOf returns the style of a kind. A kind of resources without a row in
// resourceStyles gets a plain one.
func styleOf(kind spec.Kind) kindStyle {
	switch kind {
	case spec.KindFlow:
		return kindStyle{kind: kind, verb: "runs", notes: flowNotes}
	case spec.KindStep:
		return kindStyle{kind: kind, notes: stepNotes}
	}
	styles := resourceStyles()
	if i := kindRank(kind); i < len(styles) {
		return styles[i]
	}
	return kindStyle{kind: kind, plural: string(kind) + "s", prefix: "OTHER_", form: `%s["%s"]`, icon: "▫"}
}

// kindRank returns the position of a kind of resources in the drawing order.
func kindRank(kind spec.Kind) int {
	styles := resourceStyles()
	if i := slices.IndexFunc(styles, func(s kindStyle) bool { return s.kind == kind }); i >= 0 {
		return i
	}
	return len(styles)
}

// isResource reports whether entities of a kind are drawn next to the flows.
func isResource(kind spec.Kind) bool {
	return !slices.Contains([]spec.Kind{spec.KindApplication, spec.KindFlow, spec.KindStep, spec.KindType, spec.KindVariable}, kind)
}
