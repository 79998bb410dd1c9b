package stem_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/words/stem"
	"github.com/qtype-dev/qtype/spec"
)

// sentences has a sentence of each language, and two forms of a word.
func sentences() map[stem.Language][3]string {
	return map[stem.Language][3]string{
		"english":    {"The ferry leaves at nine and it returns in the evening.", "connections", "connected"},
		"danish":     {"Jeg ved ikke, hvad der blev af det efter mødet.", "færgerne", "færger"},
		"dutch":      {"De boot vertrekt om negen uur en wij hebben het niet gezien.", "verbindingen", "verbinding"},
		"finnish":    {"Lautta lähtee yhdeksältä ja se on täällä, mutta en ole nähnyt sitä.", "lautat", "lautan"},
		"french":     {"Le bateau part à neuf heures et nous ne sommes pas dans la ville.", "réservations", "réservation"},
		"german":     {"Die Fähre fährt um neun Uhr, und ich habe sie nicht gesehen.", "Häuser", "Haus"},
		"hungarian":  {"A komp kilenckor indul, és nem tudom, hogy hol van az állomás.", "házak", "háznak"},
		"italian":    {"Il traghetto parte alle nove e non so dove sono gli altri della compagnia.", "prenotazioni", "prenotazione"},
		"norwegian":  {"Jeg vet ikke hva som ble av det etter møtet.", "fergene", "ferge"},
		"portuguese": {"O barco sai às nove e não voltou, mas você pode ir com ele para a ilha.", "reservas", "reserva"},
		"romanian":   {"Vaporul pleacă la ora nouă și nu este pe mare pentru că plouă.", "frumoase", "frumoasă"},
		"russian":    {"Паром уходит в девять, и я не знаю, что делать на острове.", "билеты", "билетов"},
		"spanish":    {"El barco sale a las nueve y no sé dónde está la estación del puerto.", "canciones", "canción"},
		"swedish":    {"Färjan går klockan nio och jag vet inte vad det är som har hänt.", "färjor", "färja"},
		"turkish":    {"Vapur dokuzda kalkıyor ve bu ada çok güzel ama deniz soğuk değil.", "biletler", "biletleri"},
	}
}

func TestOf(t *testing.T) {
	for want, of := range sentences() {
		args := &spec.EmbeddedIndexArguments{Quantization: "none", Approximate: "auto", Stemming: string(want)}
		if problems := args.CheckArguments(); len(problems) > 0 {
			t.Errorf("stemming: %v", problems[0])
		}
		if got := stem.Of(of[0]); got != want {
			t.Errorf("%q is %s, want %s", of[0], got, want)
		}
		if a, b := want.Term(of[1]), want.Term(of[2]); a != b {
			t.Errorf("%s: %q and %q have the stems %q and %q", want, of[1], of[2], a, b)
		}
	}
	for _, text := range []string{"", "Berlin", "東京に住んでいます。", "Prom odpływa o dziewiątej i nie wiem, gdzie jest dworzec."} {
		if got := stem.Of(text); got != stem.English {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func TestTerm(t *testing.T) {
	for _, c := range []struct {
		language   stem.Language
		word, want string
	}{{"english", "Café", "cafe"}, {"english", "RUNNING", "run"}, {"english", "B2Bs", "b2bs"}, {"german", "東", "東"}, {"", "Läufe", "laufe"}, {"german", "Läufe", "lauf"}, {"klingon", "words", "words"}} {
		if got := c.language.Term(c.word); got != c.want {
			t.Errorf("%s: the stem of %q is %q, want %q", c.language, c.word, got, c.want)
		}
	}
}

// FuzzTerm: no word of any language fails, and a word that is indexed has a stem.
func FuzzTerm(f *testing.F) {
	for _, of := range sentences() {
		f.Add(of[1])
		f.Add(of[2])
	}
	f.Add("\xff\u0301ab")
	f.Fuzz(func(t *testing.T, word string) {
		for language := range sentences() {
			if got := language.Term(word); (got == "") != (stem.Language("").Term(word) == "") {
				t.Errorf("%s: the stem of %q is %q", language, word, got)
			}
		}
	})
}
