package spec

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Policy is the name of a memory policy: which messages leave a memory's
// window when it is full.
type Policy string

// The policies.
const (
	PolicyFlush         Policy = "flush"          // the default
	PolicyMessageWindow Policy = "message_window" // at most max_messages
	PolicyTokenWindow   Policy = "token_window"   // at most max_tokens
	PolicyRoundWindow   Policy = "round_window"   // the last n_rounds
	PolicyUnbounded     Policy = "unbounded"      // no limit
)

// PolicyRow declares a memory policy. Schema, loader, validator, replay, diff,
// diagram, hover and the runtime read the rows; package memory has the
// behavior of each row in a file of the same name.
type PolicyRow struct {
	Name     Policy        // the value of the key policy
	Doc      string        // what the window keeps, in a few words
	Limits   []PolicyLimit // its limits; the first one is the size of the window
	Settings []string      // further keys of a memory that not every policy supports
}

// PolicyLimit is a limit of a policy. Its default is that of the field of
// Memory with the same key; a limit without a default is required.
type PolicyLimit struct {
	Key      string     // the key in a document, a field of Memory
	Unit     LimitUnit  // what its value counts
	Stricter Strictness // which change of its value makes conversations keep less
	Doc      string     // what its value means, in a few words
}

// LimitUnit is what the value of a limit counts.
type LimitUnit string

// The units.
const (
	UnitTokens     LimitUnit = "tokens"
	UnitMessages   LimitUnit = "messages"
	UnitRounds     LimitUnit = "rounds"     // a user message and the messages up to the next one
	UnitCharacters LimitUnit = "characters" // Unicode code points
	UnitShare      LimitUnit = "share"      // of the first limit: above 0 and at most 1
)

// Strictness is the direction in which a limit keeps less.
type Strictness string

// The directions.
const (
	LowerIsStricter Strictness = "lower"
	NotStricter     Strictness = "" // no value keeps less than another
)

// The keys of a memory that only some policies support.
const (
	settingContext         = "context"
	settingKeepSystemFirst = "keep_system_first"
	settingShortenResults  = "shorten_tool_results"
	settingKeepResults     = "keep_tool_results"
	settingDropImages      = "drop_images"
	settingPrefix          = "prefix"
	settingCompactAt       = "compact_at"
)

// Policies returns the rows of all policies, the default first.
func Policies() []PolicyRow {
	return []PolicyRow{
		{Name: PolicyFlush, Doc: "blocks of old messages, QType's way", Settings: []string{settingContext, settingCompactAt, settingShortenResults, settingKeepResults, settingDropImages, settingPrefix}, Limits: []PolicyLimit{
			{Key: "token_limit", Unit: UnitTokens, Stricter: LowerIsStricter, Doc: "the most tokens that chat messages and context together may hold"},
			{Key: "chat_history_token_ratio", Unit: UnitShare, Stricter: LowerIsStricter, Doc: "the share of token_limit for chat messages, above 0 and at most 1; the rest is for context"},
			{Key: "token_flush_size", Unit: UnitTokens, Doc: "how many tokens at least leave at a time once the chat share is exceeded"},
		}},
		{Name: PolicyMessageWindow, Doc: "at most max_messages", Settings: []string{settingKeepSystemFirst, settingShortenResults, settingKeepResults, settingDropImages}, Limits: []PolicyLimit{
			{Key: "max_messages", Unit: UnitMessages, Stricter: LowerIsStricter, Doc: "the most messages in the window"},
		}},
		{Name: PolicyTokenWindow, Doc: "at most max_tokens", Settings: []string{settingKeepSystemFirst, settingShortenResults, settingKeepResults, settingDropImages}, Limits: []PolicyLimit{
			{Key: "max_tokens", Unit: UnitTokens, Stricter: LowerIsStricter, Doc: "the most tokens in the window"},
		}},
		{Name: PolicyRoundWindow, Doc: "the last n_rounds", Limits: []PolicyLimit{
			{Key: "n_rounds", Unit: UnitRounds, Stricter: LowerIsStricter, Doc: "how many rounds, from one user message up to the next, stay in the window"},
			{Key: "max_context", Unit: UnitCharacters, Stricter: LowerIsStricter, Doc: "the most characters in the window"},
		}},
		{Name: PolicyUnbounded, Doc: "nothing", Settings: []string{settingShortenResults, settingKeepResults, settingDropImages}},
	}
}

// FindPolicy returns the row of a policy, of the default one for an empty
// name; ok is false if there is none.
func FindPolicy(name Policy) (row PolicyRow, ok bool) {
	rows := Policies()
	if name == "" {
		return rows[0], true
	}
	i := slices.IndexFunc(rows, func(r PolicyRow) bool { return r.Name == name })
	if i < 0 {
		return PolicyRow{}, false
	}
	return rows[i], true
}

// PoliciesWith returns the names of the policies that support a key of a
// memory, and whether the key depends on the policy at all.
func PoliciesWith(key string) (names []Policy, depends bool) {
	for _, row := range Policies() {
		if row.Supports(key) {
			names = append(names, row.Name)
		}
	}
	return names, len(names) > 0
}

// PolicyKeys returns all keys of a memory that not every policy supports.
func PolicyKeys() []string {
	var keys []string
	for _, row := range Policies() {
		for _, l := range row.Limits {
			keys = append(keys, l.Key)
		}
		keys = append(keys, row.Settings...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Limit returns the policy's limit with a key; ok is false if it has none.
func (r PolicyRow) Limit(key string) (limit PolicyLimit, ok bool) {
	i := slices.IndexFunc(r.Limits, func(l PolicyLimit) bool { return l.Key == key })
	if i < 0 {
		return PolicyLimit{}, false
	}
	return r.Limits[i], true
}

// Supports reports whether a key, of a limit or another setting, has an effect
// with this policy.
func (r PolicyRow) Supports(key string) bool {
	_, ok := r.Limit(key)
	return ok || slices.Contains(r.Settings, key)
}

// Default returns the limit's default; ok is false for a required limit.
func (l PolicyLimit) Default() (value float64, ok bool) {
	f, found := memoryField(l.Key)
	if !found {
		return 0, false
	}
	value, err := strconv.ParseFloat(f.Tag.Get("default"), 64)
	return value, err == nil
}

// Range describes the values that the limit may have.
func (l PolicyLimit) Range() string {
	if l.Unit == UnitShare {
		return "above 0 and at most 1"
	}
	return "positive"
}

// Allows reports whether the limit may have a value. Values other than shares
// are whole numbers up to 2,147,483,647.
func (l PolicyLimit) Allows(value float64) bool {
	if l.Unit == UnitShare {
		return value > 0 && value <= 1
	}
	return value > 0 && value <= math.MaxInt32 && value == math.Trunc(value)
}

// memoryField returns the field of Memory with a YAML key.
func memoryField(key string) (reflect.StructField, bool) {
	t := reflect.TypeFor[Memory]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); name == key {
			return t.Field(i), true
		}
	}
	return reflect.StructField{}, false
}

// IsMemoryKey reports whether a memory has a key.
func IsMemoryKey(key string) bool {
	_, ok := memoryField(key)
	return ok
}

// Row returns the row of the memory's policy; ok is false for an unknown policy.
func (m *Memory) Row() (row PolicyRow, ok bool) { return FindPolicy(m.Policy) }

// Limit returns the value that the document gives to a limit of any policy, or
// the limit's default.
func (m *Memory) Limit(key string) float64 {
	f, ok := memoryField(key)
	if !ok {
		return 0
	}
	v := reflect.ValueOf(m).Elem().FieldByIndex(f.Index)
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}

// Limits returns the values of the limits of the memory's policy, by key.
// Limits without a value are left out.
func (m *Memory) Limits() map[string]float64 {
	row, _ := m.Row()
	limits := map[string]float64{}
	for _, l := range row.Limits {
		if value := m.Limit(l.Key); value != 0 {
			limits[l.Key] = value
		}
	}
	return limits
}

// PolicyDocs returns the descriptions of the keys of a memory that the rows
// document: policy and the limits.
func PolicyDocs() map[string]string {
	docs := map[string]string{}
	var policies []string
	for _, row := range Policies() {
		policies = append(policies, fmt.Sprintf("%s (%s)", row.Name, row.Doc))
		for _, l := range row.Limits {
			doc := fmt.Sprintf("For the policy %s: %s", row.Name, l.Doc)
			if before := docs[l.Key]; before != "" {
				doc = before + "; f" + doc[1:]
			}
			docs[l.Key] = doc
		}
	}
	for key := range docs {
		docs[key] += "."
	}
	docs["policy"] = "Selects what is evicted from the window when it is full: " + strings.Join(policies, ", ") + "."
	return docs
}
