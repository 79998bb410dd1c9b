package embedded_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/index/embedded"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// texts are an entry in each of some languages; the one in English is too short to tell.
func texts() map[string]string {
	return map[string]string{
		"german":  "Die Häuser am Hafen sind alt, und die Verbindungen mit den Inseln werden nicht gut.",
		"french":  "Les réservations pour le bateau ne sont pas dans la liste que vous avez.",
		"russian": "Билеты на паром есть, но я не знаю, что с ними делать.",
		"short":   "Connected systems",
	}
}

// found returns the ids of the entries that a text finds.
func found(t *testing.T, x index.Index, text string) []string {
	t.Helper()
	matches, err := x.Search(t.Context(), index.Query{Mode: index.ByText, Text: text, Limit: 5})
	testkit.Must(t, err)
	var ids []string
	for _, m := range matches {
		ids = append(ids, m.ID)
	}
	return ids
}

// TestSearch_Stems: the endings of words are those of the language of each entry, whatever is the language of the
// query.
func TestSearch_Stems(t *testing.T) {
	x := open(t, embedded.Options{Path: filepath.Join(t.TempDir(), "index.db"), Stemming: "auto"})
	for id, text := range texts() {
		testkit.Must(t, x.Put(t.Context(), []index.Entry{{ID: id, Text: text}}))
	}
	for query, want := range map[string]string{
		"Haus": "german", "Verbindung": "german", "Verbnidung": "german", `"alte Hafen"`: "", `"Verbindung mit den Inseln"`: "german", "Verbindungen*": "german", "Verb*": "german",
		"réservation": "french", "reservations": "french", "билет": "russian", "connection": "short", `"connection system"`: "short", "systen": "short",
	} {
		if got := strings.Join(found(t, x, query), ", "); got != want {
			t.Errorf("%s finds %q, want %q", query, got, want)
		}
	}
	matches, err := x.Search(t.Context(), index.Query{Mode: index.ByText, Text: "Haus Verbindung", Limit: 1, Highlight: true})
	if err != nil || len(matches) != 1 || !slices.Equal(matches[0].Highlights, []string{"Die **Häuser** am Hafen sind alt, und die **Verbindungen** mit den Inseln werden nicht gut."}) {
		t.Errorf("highlights %+v, %v", matches, err)
	}
}

// TestSearch_StemsOfOlderFile: a file with words as they are stays as it is until it is cleared.
func TestSearch_StemsOfOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := embedded.Open(embedded.Options{Path: path})
	testkit.Must(t, x.Put(t.Context(), []index.Entry{{ID: "german", Text: texts()["german"]}}))
	testkit.Must(t, x.Close())
	x = embedded.Open(embedded.Options{Path: path, Stemming: "auto"})
	testkit.Must(t, x.Put(t.Context(), []index.Entry{{ID: "french", Text: texts()["french"]}}))
	if got := slices.Concat(found(t, x, "Haus"), found(t, x, "réserver"), found(t, x, "Häuser"), found(t, x, "réservations")); !slices.Equal(got, []string{"german", "french"}) {
		t.Errorf("before it is cleared: %q", got)
	}
	testkit.Must(t, x.Clear(t.Context()))
	testkit.Must(t, x.Put(t.Context(), []index.Entry{{ID: "german", Text: texts()["german"]}}))
	if got := found(t, x, "Haus"); !slices.Equal(got, []string{"german"}) {
		t.Errorf("after it: %q", got)
	}
	testkit.Must(t, x.Close())

	german := open(t, embedded.Options{Path: path, Stemming: "german"})
	err := german.Put(t.Context(), []index.Entry{{ID: "2", Text: "Haus"}})
	if want := "was created with other settings (no vectors, word stems by language, not no vectors, german word stems): restore them, or clear the index"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("with other stems: %v", err)
	}
}
