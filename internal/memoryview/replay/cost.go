package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/memory/prefix"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// CostOptions configure Cost.
type CostOptions struct {
	Rules  spec.PromptCaching // of the provider
	Prices *catalogue.Prices  // of the model; nil if they are unknown
	Format Format             // default Text
	// ContextWindow is Options.ContextWindow, for the declared policy.
	ContextWindow int
}

// CostOf returns the rules and the prices for PROVIDER or PROVIDER/MODEL: with a model its built-in
// prices, else the prices of the application's first model that the provider has.
func CostOf(app *spec.Application, named string) (CostOptions, error) {
	name, id, _ := strings.Cut(named, "/")
	row, ok := spec.LookupProvider(name)
	for _, m := range app.Models {
		if own, known := m.Base().ProviderRow(); known && own.Name == name { // also one that the program adds
			row, ok = own, true
		}
	}
	switch {
	case !ok:
		return CostOptions{}, terminal.Usagef("unknown provider %q", name)
	case row.Caching == nil:
		return CostOptions{}, terminal.Usagef("the rules of the prompt cache of %s are unknown", name)
	}
	o := CostOptions{Rules: *row.Caching}
	if known, ok := catalogue.Lookup(name, id); ok {
		o.Prices = known.Prices
	}
	if id != "" && o.Prices == nil {
		return o, terminal.Usagef("the prices of %s are unknown; declare a model with prices and pass --cost %s", named, name)
	}
	for _, m := range app.Models {
		if base := m.Base(); id == "" && o.Prices == nil && base.Provider == name {
			o.Prices = base.CallPrices()
		}
	}
	return o, nil
}

// PolicyCost is what the calls of a transcript send with one policy.
type PolicyCost struct {
	Policy   spec.Policy        `json:"policy"`          // the policy
	Declared bool               `json:"declared"`        // it is that of the document, with its limits
	Limits   map[string]float64 `json:"limits"`          // its limits
	Calls    int                `json:"calls"`           // calls of the model: answers of the transcript
	Prompt   int64              `json:"prompt_tokens"`   // tokens of all prompts
	Cached   int64              `json:"cached_tokens"`   // of those, tokens that the provider's cache has
	Price    *float64           `json:"price,omitempty"` // of the prompts, in the currency of the prices; nil if they are unknown
}

// largest are the sizes of the largest window of a replay.
type largest struct{ messages, tokens, rounds, characters int }

// Cost replays a transcript through the declared memory and through all policies, with the
// limits that hold the largest window that the declared one sends, and writes a row for
// each. A call of the model precedes each answer of the transcript; the provider's cache
// has the prompt of the call before.
func Cost(ctx context.Context, declared memory.Config, in io.Reader, out io.Writer, o CostOptions) error {
	lines, err := readCostLines(in)
	if err != nil {
		return err
	}
	if declared.Compact.At == 0 {
		declared.Context = nil // its texts are not in the transcript
	}
	declared.Limits = limitsWithin(declared, o.ContextWindow)
	own, size, err := costOf(ctx, declared, lines, o)
	if err != nil {
		return err
	}
	own.Declared = true
	rows := []PolicyCost{own}
	for _, p := range spec.Policies() {
		cfg := memory.Config{ID: declared.ID, Policy: p.Name, Limits: limitsFor(p, size), Counter: declared.Counter, KeepSystemFirst: declared.KeepSystemFirst && p.Supports("keep_system_first")}
		row, _, err := costOf(ctx, cfg, lines, o)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if o.Format == JSON {
		enc := json.NewEncoder(out)
		for _, row := range rows {
			if err := enc.Encode(row); err != nil {
				return err
			}
		}
		return nil
	}
	return writeCosts(out, rows)
}

// costLine is a message of a transcript, or the beginning of another session.
type costLine struct {
	message *chat.Message
	line    int
}

// readCostLines reads a transcript. Operations that change a window are errors: other
// policies would not follow them.
func readCostLines(in io.Reader) ([]costLine, error) {
	var lines []costLine
	buffered := bufio.NewReaderSize(in, 64<<10)
	for n := 1; ; n++ {
		raw, err := readLine(buffered)
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err == nil && len(bytes.TrimSpace(raw)) > 0 {
			var one []costLine
			one, err = readCostLine(raw, n)
			lines = append(lines, one...)
		}
		if err != nil {
			return nil, &LineError{Line: n, Err: err}
		}
	}
}

func readCostLine(raw []byte, n int) ([]costLine, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return nil, errors.New("the line is not a JSON object")
	}
	if op, ok := keys["op"]; ok {
		switch string(op) {
		case `"event"`, `"variables"`, `"context"`:
			return nil, nil
		case `"session"`, `"clear"`:
			return []costLine{{line: n}}, nil
		}
		return nil, fmt.Errorf("the operation %s changes the window of one policy: costs are computed of messages, session, clear, event and variables", op)
	}
	if details, ok := keys["qtype"]; ok {
		if isExcluded(details) {
			return nil, nil
		}
		delete(keys, "qtype")
		raw = encode(keys)
	}
	msg, err := chat.ParseOpenAI(raw)
	return []costLine{{&msg, n}}, err
}

// costOf replays a transcript through one policy.
func costOf(ctx context.Context, cfg memory.Config, lines []costLine, o CostOptions) (PolicyCost, largest, error) {
	row := PolicyCost{Policy: cfg.Policy, Limits: cfg.Limits}
	if row.Policy == "" {
		row.Policy = spec.PolicyFlush
	}
	var size largest
	m, err := memory.New(cfg, memory.NewInProcess())
	if err != nil {
		return row, size, err
	}
	var price float64
	var before []prefix.Part
	for _, l := range lines {
		if l.message == nil {
			if err := m.Clear(ctx, session); err != nil {
				return row, size, err
			}
			before = nil
			continue
		}
		if l.message.Role == chat.Assistant {
			w, err := m.Window(ctx, session)
			if err != nil {
				return row, size, &LineError{Line: l.line, Err: err}
			}
			sent := w.Messages()
			parts := partsOf(m, sent)
			prompt, cached := promptTokens(before, parts, o.Rules)
			row.Calls, row.Prompt, row.Cached = row.Calls+1, row.Prompt+prompt, row.Cached+cached
			price += callPrice(o, prompt, cached)
			size.grow(sent, int(prompt))
			before = parts
		}
		if err := m.Append(ctx, session, *l.message); err != nil {
			return row, size, &LineError{Line: l.line, Err: err}
		}
	}
	if o.Prices != nil {
		price = math.Round(price*1e6) / 1e6
		row.Price = &price
	}
	return row, size, nil
}

// partsOf returns the parts of a request.
func partsOf(m *memory.Memory, sent []chat.Message) []prefix.Part {
	parts := make([]prefix.Part, len(sent))
	for i := range sent {
		parts[i] = prefix.Of(prefix.Message, &sent[i], sent[i].AsSent().Blocks)
		parts[i].Tokens = m.Tokens(sent[i])
	}
	return parts
}

// promptTokens returns the tokens of a prompt, and how many of them the cache has: those of
// the parts that begin the prompt before, too, in whole blocks.
func promptTokens(before, sent []prefix.Part, rules spec.PromptCaching) (prompt, cached int64) {
	cached = int64(prefix.Common(before, sent).Tokens)
	if cached -= cached % int64(max(rules.Block, 1)); cached < int64(rules.Minimum) {
		cached = 0
	}
	return int64(prefix.Sum(sent)), cached
}

// callPrice returns the price of a prompt; 0 without prices. What the cache does not have is
// written to it, if that has a price and the prompt is long enough.
func callPrice(o CostOptions, prompt, cached int64) float64 {
	if o.Prices == nil {
		return 0
	}
	u := catalogue.Usage{Input: int(prompt), CachedInput: int(cached)}
	if o.Rules.Writes && prompt >= int64(o.Rules.Minimum) {
		u.Writes.Other = int(prompt - cached)
	}
	return o.Prices.Charge(time.Now(), "", u).Amount
}

// grow notes the sizes of a window.
func (l *largest) grow(sent []chat.Message, tokens int) {
	rounds, characters := 0, 0
	for i := range sent {
		if sent[i].Role == chat.User {
			rounds++
		}
		characters += len([]rune(sent[i].Text()))
	}
	l.messages, l.tokens = max(l.messages, len(sent)), max(l.tokens, tokens)
	l.rounds, l.characters = max(l.rounds, rounds), max(l.characters, characters)
}

// limitsFor returns the limits of a policy that hold a window of a size. Flush has half of
// it leave at a time.
func limitsFor(p spec.PolicyRow, size largest) memory.Limits {
	limits := memory.Limits{}
	for _, l := range p.Limits {
		n := map[spec.LimitUnit]int{spec.UnitTokens: size.tokens, spec.UnitMessages: size.messages, spec.UnitRounds: size.rounds, spec.UnitCharacters: size.characters}[l.Unit]
		limits[l.Key] = float64(max(n, 1))
		switch {
		case l.Unit == spec.UnitShare:
			limits[l.Key] = 1
		case l.Unit == spec.UnitTokens && l.Stricter != spec.LowerIsStricter:
			limits[l.Key] = float64(max(n/2, 1))
		}
	}
	return limits
}

// writeCosts writes the rows as a table.
func writeCosts(out io.Writer, rows []PolicyCost) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s %7s %15s %15s %7s %12s\n", "policy", "calls", "prompt tokens", "cached tokens", "cached", "price")
	for _, r := range rows {
		name, share, price := string(r.Policy), 0.0, "unknown"
		if r.Declared {
			name += " (declared)"
		}
		if r.Prompt > 0 {
			share = 100 * float64(r.Cached) / float64(r.Prompt)
		}
		if r.Price != nil {
			price = fmt.Sprintf("%.6f", *r.Price)
		}
		fmt.Fprintf(&b, "%-24s %7s %15s %15s %6.1f%% %12s\n", name, textfmt.Thousands(r.Calls), textfmt.Thousands(r.Prompt), textfmt.Thousands(r.Cached), share, price)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
