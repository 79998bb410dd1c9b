package author

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/catalogue/source"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/loader"
)

// NewModels returns qtype models, with the commands that a program adds to it.
func NewModels(s *cli.Streams, more ...*cobra.Command) *cobra.Command {
	var format *cli.EnumFlag
	c := &cobra.Command{
		Use:   "models [WORD]",
		Short: "List the models of the catalogue, with limits, prices and shutdown dates",
		Long: `Lists the models that the catalogue knows, those of models.yaml in the current folder
and of the file that QTYPE_MODELS names included. WORD is a part of the provider or of the id.
Prices are in US dollars for a million tokens that are read and written.`,
		Example: `  qtype models opus
  qtype models show claude-opus-5-5
  qtype models update https://models.dev/api.json`,
		Args: cli.OptionalArgument("word"),
		RunE: func(c *cobra.Command, args []string) error {
			known, err := userCatalogue(c.Context())
			if err != nil {
				return err
			}
			return listModels(s, known, strings.Join(args, ""), format.Value)
		},
	}
	format = cli.AddLineFormat(c)
	c.AddCommand(append([]*cobra.Command{newModelsShow(s), newModelsUpdate(s)}, more...)...)
	return c
}

// userCatalogue returns the catalogue with the rows of the user.
func userCatalogue(ctx context.Context) (*catalogue.Catalogue, error) {
	known, list := loader.Catalogue(ctx, loader.CatalogueFile, loader.Options{})
	return known, list.Err()
}

// listModels writes the models that have a word in their provider or id.
func listModels(s *cli.Streams, known *catalogue.Catalogue, word, format string) error {
	var found []catalogue.Model
	for _, m := range known.All() {
		if strings.Contains(m.Provider+"/"+strings.ToLower(m.ID), strings.ToLower(word)) {
			found = append(found, m)
		}
	}
	switch {
	case len(found) == 0:
		return unknownModel(known, word)
	case format == "json":
		return writeRows(s.Out, found)
	}
	table := terminal.NewTable(s.Width, func() io.Writer { return s.Out }, terminal.Column{Name: "provider"}, terminal.Column{Name: "model"},
		terminal.Column{Name: "window", Right: true}, terminal.Column{Name: "output", Right: true}, terminal.Column{Name: "$ in", Right: true}, terminal.Column{Name: "$ out", Right: true},
		terminal.Column{Name: "status"}, terminal.Column{Name: "shutdown"})
	for _, m := range found {
		read, written := "", ""
		if m.Prices != nil {
			rates := m.Prices.RatesAt(time.Now(), "", 0)
			read, written = dollars(rates.Input), dollars(rates.Output)
		}
		if err := table.Row([]string{m.Provider, m.ID, tokens(m.ContextWindow), tokens(m.MaxOutput), read, written, string(m.Status), m.Shutdown}); err != nil {
			return err
		}
	}
	return table.Flush()
}

// unknownModel returns the error of a name that the catalogue does not have.
func unknownModel(known *catalogue.Catalogue, name string) error {
	provider, id, ok := strings.Cut(strings.ToLower(name), "/")
	switch {
	case !ok || id == "":
		provider, id = "", name
	case !known.HasProvider(provider):
		provider = ""
	}
	if near := known.Nearest(provider, id); len(near) > 0 {
		return fmt.Errorf("the catalogue has no model %q; similar names: %s", name, strings.Join(near, ", "))
	}
	return fmt.Errorf("the catalogue has no model %q", name)
}

// writeRows writes rows as JSON, one a line.
func writeRows(w io.Writer, rows []catalogue.Model) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for _, m := range rows {
		if err := out.Encode(m); err != nil {
			return err
		}
	}
	return nil
}

// dollars writes a rate, nothing for one that is unknown.
func dollars(rate *float64) string {
	if rate == nil {
		return ""
	}
	return textfmt.Number(*rate)
}

// tokens writes a number of tokens, nothing for an unknown one.
func tokens(n int) string {
	if n == 0 {
		return ""
	}
	return textfmt.Thousands(n)
}

// newModelsShow returns qtype models show.
func newModelsShow(s *cli.Streams) *cobra.Command {
	var format *cli.EnumFlag
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show all that the catalogue has of a model",
		Long: `Shows all that the catalogue has of a model: limits, prices with their dates and tiers,
reasoning, the parameters that it refuses, and where the facts are from. NAME is any name that a
provider accepts, or PROVIDER/NAME for the model of one provider.`,
		Example: `  qtype models show openai/gpt-5.5
  qtype models show us.anthropic.claude-opus-5-5 --format json`,
		Args: cli.Arguments("a model: qtype models show NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			known, err := userCatalogue(c.Context())
			if err != nil {
				return err
			}
			found := modelsNamed(known, args[0])
			switch {
			case len(found) == 0:
				return unknownModel(known, args[0])
			case format.Value == "json":
				return writeRows(s.Out, found)
			}
			for i, m := range found {
				if i > 0 {
					fmt.Fprintln(s.Out)
				}
				if err := writeModel(s.Out, m); err != nil {
					return err
				}
			}
			return nil
		},
	}
	format = cli.AddLineFormat(c)
	return c
}

// modelsNamed returns the models that providers know by a name, or one provider by
// PROVIDER/NAME.
func modelsNamed(known *catalogue.Catalogue, name string) []catalogue.Model {
	var providers []string
	for _, m := range known.All() {
		if !slices.Contains(providers, m.Provider) {
			providers = append(providers, m.Provider)
		}
	}
	var found []catalogue.Model
	add := func(provider, id string) {
		if m, ok := known.Lookup(provider, id); ok && m.Provider == provider {
			found = append(found, *m)
		}
	}
	if provider, id, ok := strings.Cut(name, "/"); ok && slices.Contains(providers, strings.ToLower(provider)) {
		add(strings.ToLower(provider), id)
		return found
	}
	for _, provider := range providers {
		add(provider, name)
	}
	return found
}

// writeModel writes a row as lines of keys and values, in the order of its keys.
func writeModel(w io.Writer, m catalogue.Model) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	in := json.NewDecoder(strings.NewReader(string(text)))
	if _, err := in.Token(); err != nil {
		return err
	}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err
		}
		writeValue(w, "", fmt.Sprint(key), value)
	}
	return nil
}

// writeValue writes a key with its value: a list of texts in one line, other lists and
// mappings below it.
func writeValue(w io.Writer, indent, key string, value json.RawMessage) {
	var texts []string
	var items []json.RawMessage
	switch {
	case json.Unmarshal(value, &texts) == nil && key != "sources" && key != "disagreement":
		fmt.Fprintf(w, "%s%s: %s\n", indent, key, terminal.Clean(strings.Join(texts, ", ")))
	case json.Unmarshal(value, &items) == nil:
		fmt.Fprintf(w, "%s%s:\n", indent, key)
		for _, item := range items {
			var refused catalogue.Rejection
			if _ = json.Unmarshal(item, &refused); refused.Text != "" {
				fmt.Fprintf(w, "%s  - %s\n", indent, terminal.Clean(strings.TrimSuffix(refused.Text+" → "+refused.Error, " → ")))
				continue
			}
			fmt.Fprintf(w, "%s  - %s\n", indent, terminal.Clean(plainText(item)))
		}
	case value[0] == '{':
		fmt.Fprintf(w, "%s%s:\n", indent, key)
		in := json.NewDecoder(strings.NewReader(string(value)))
		_, _ = in.Token() // {
		for in.More() {
			inner, err := in.Token()
			var part json.RawMessage
			if err != nil || in.Decode(&part) != nil {
				return
			}
			writeValue(w, indent+"  ", fmt.Sprint(inner), part)
		}
	default:
		fmt.Fprintf(w, "%s%s: %s\n", indent, key, terminal.Clean(plainText(value)))
	}
}

// plainText returns a text without quotes, and other values as JSON.
func plainText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// newModelsUpdate returns qtype models update.
func newModelsUpdate(s *cli.Streams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "update FILE|URL",
		Short: "Write models.yaml with newer facts",
		Long: `Writes the rows that differ from the built-in catalogue to models.yaml: new models, and changed
limits, prices and shutdown dates. FILE is models.dev's api.json, LiteLLM's
model_prices_and_context_window.json, a models.yaml, or rows of this catalogue as JSON lines. A row
with a wrong value is not written, and is reported. Nothing is
fetched without this command. Review the file: its rows decide what calls cost.`,
		Example: `  qtype models update https://models.dev/api.json
  qtype models update model_prices_and_context_window.json -o shared/models.yaml`,
		Args: cli.Arguments("a file or an address: qtype models update FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if output == "" || args[0] == "" {
				return terminal.Usagef("the name of the file is empty")
			}
			text, err := readSource(c.Context(), args[0])
			if err != nil {
				return err
			}
			rows, err := source.Read(text)
			if err != nil {
				return fmt.Errorf("%s: %w", remotefs.Redacted(args[0]), err)
			}
			updates := source.Updates(rows.Models, nil)
			made, err := source.YAML(updates, httpx.SingleLine(remotefs.Redacted(args[0]), 300))
			if err != nil {
				return err
			}
			to := output
			if to == "-" {
				to = "" // standard output
			}
			if to != "" && !isReplaceable(to) {
				return terminal.Usagef("%s was not written by this command: choose another file with -o", output)
			}
			if err := s.WriteTo(to, string(made)); err != nil {
				return err
			}
			for i, problem := range rows.Invalid {
				if i == maxReported {
					fmt.Fprintf(s.Err, "and %s more\n", textfmt.Thousands(len(rows.Invalid)-i))
					break
				}
				fmt.Fprintf(s.Err, "not written: %s\n", terminal.Clean(httpx.SingleLine(problem, 300)))
			}
			_, err = fmt.Fprintf(s.Err, "%s: %s read, %s differ from the built-in catalogue, %s not used, %s wrong\n", cmp.Or(to, "standard output"),
				textfmt.Count(len(rows.Models), "model"), textfmt.Thousands(len(updates)), textfmt.Thousands(len(rows.Skipped)), textfmt.Thousands(len(rows.Invalid)))
			return err
		},
	}
	c.Flags().StringVarP(&output, "output", "o", loader.CatalogueFile, "write `FILE`; - is standard output")
	return c
}

// isReplaceable reports whether the command may write a path: it does not exist, or a former call has written it.
// It accepts a folder, for which writing has an error. A pipe or a device is not read: it may never end.
func isReplaceable(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return true
	}
	if !info.Mode().IsRegular() {
		return false
	}
	before, err := readLocal(path)
	return err == nil && source.Written(before)
}

// maxReported is how many wrong rows are named.
const maxReported = 10

// maxSource limits the size of a file of models.
const maxSource = 32 << 20

// readSource reads a file or an address.
func readSource(ctx context.Context, name string) ([]byte, error) {
	if _, remote := remotefs.Remote(name); !remote {
		return readLocal(remotefs.Path(name))
	}
	if u, err := url.Parse(name); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: not an http or https address", remotefs.Redacted(name))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, name, nil)
	if err != nil {
		return nil, errors.New("the address cannot be read: it is not a URL")
	}
	answer, err := (&http.Client{CheckRedirect: httpx.CheckRedirect}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", remotefs.Redacted(name), httpx.Reason(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		page, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // an incomplete body is good enough
		return nil, fmt.Errorf("%s: HTTP %d: %s", remotefs.Redacted(name), answer.StatusCode, cmp.Or(httpx.Excerpt(string(page), 200), http.StatusText(answer.StatusCode)))
	}
	return readLimited(answer.Body, remotefs.Redacted(name))
}

// readLocal reads a regular file.
func readLocal(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return readLimited(in, name)
}

// readLimited reads a file of models.
func readLimited(in io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxSource+1))
	if len(text) > maxSource {
		return nil, fmt.Errorf("%s: larger than %d MiB", name, maxSource>>20)
	}
	return text, err
}
