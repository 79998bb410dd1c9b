// Package stem finds the stems of words, so that searches compare words without their endings.
package stem

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
	"golang.org/x/text/unicode/norm"

	"github.com/qtype-dev/qtype/internal/words"
)

// Language is the English name of a language, such as german.
type Language string

// English is the language of texts whose language is not clear.
const English Language = "english"

// language is a language with the frequent words that others do not have, and its stems.
type language struct {
	name     Language
	frequent string // without accents, separated by spaces
	stem     func(*snowballstem.Env) bool
}

// languages is the table of the languages.
//
//nolint:gochecknoglobals // a constant table
var languages = []language{
	{English, "the and of to is that it for was with are this you have not from they what which there would", english.Stem},
	{"danish", "og jeg det er ikke til af hvad hvor hvordan blev efter ogsa mellem gennem sporgsmal kunne selv mig dig noget", danish.Stem},
	{"dutch", "het een van niet zijn voor met maar dat deze wordt naar hebben ook bij uit waar hoe geen wij", dutch.Stem},
	{"finnish", "ja on ei se etta oli hän kun mutta ovat niin mita tama olen voi myos sitten missa joka olla", finnish.Stem},
	{"french", "le les est une pas je vous dans qui pour ce des que il avec sur nous mais sont au cette ou", french.Stem},
	{"german", "der die und ist nicht ich das ein zu den mit von auf fur sich eine wird auch wie wo dem aus", german.Stem},
	{"hungarian", "az es nem hogy egy van meg csak is volt mar vagy ez mint lesz kell milyen hol nagyon azt", hungarian.Stem},
	{"italian", "il che di non per una sono gli della con come del nel anche piu questo alla dove perche ho", italian.Stem},
	{"norwegian", "og jeg det er ikke til av hva hvor hvordan ble etter ogsa mellom gjennom kunne selv meg deg noe", norwegian.Stem},
	{"portuguese", "nao uma os com para em do da que voce dos mais mas foi isso ele pelo seu tem muito onde", portuguese.Stem},
	{"romanian", "si nu este sunt pentru cu din la ce care sa am fost mai pe unde dar acest fi sau", romanian.Stem},
	{"russian", "и не что в на как это с он по но для все из вы у за бы так от", russian.Stem},
	{"spanish", "el los de que una no es por con las para del se como pero esta muy donde yo su hay", spanish.Stem},
	{"swedish", "och jag det ar inte som att en pa ett har av for med till hur var vad om men den", swedish.Stem},
	{"turkish", "ve bir bu icin ile de da ne mi var cok daha gibi ama degil olarak nasil nerede kadar ben", turkish.Stem},
}

// frequent returns which languages have a frequent word, as bits.
var frequent = sync.OnceValue(func() map[string]uint32 {
	table := map[string]uint32{}
	for i, l := range languages {
		for word := range strings.FieldsSeq(l.frequent) {
			table[words.Normalize(word)] |= 1 << i
		}
	}
	return table
})

// maxDetected is the number of words by which the language of a text is found.
const maxDetected = 500

// Of returns the language of texts together: the one with most of their frequent words; English if that is not
// clear.
func Of(texts ...string) Language {
	table := frequent()
	var counts [32]int
	n := 0
	for _, text := range texts {
		for t := range words.All(text) {
			if n++; n > maxDetected {
				break
			}
			in := table[t.Term]
			for i := 0; in != 0; i, in = i+1, in>>1 {
				counts[i] += int(in & 1)
			}
		}
	}
	best, second := 0, 0
	for i := range languages[1:] {
		if i++; counts[i] > counts[best] {
			best = i
		}
	}
	for i := range languages {
		if i != best {
			second = max(second, counts[i])
		}
	}
	if counts[best] < 2 || counts[best] == second {
		return English
	}
	return languages[best].name
}

// Term returns the stem of a word of a text, in the form that is indexed. A word with a digit has
// none, and is returned as it is.
func (l Language) Term(word string) string {
	term := words.Normalize(word)
	i := slices.IndexFunc(languages, func(k language) bool { return k.name == l })
	first, _ := utf8.DecodeRuneInString(word)
	if i < 0 || words.IsOneWord(first) || strings.ContainsAny(term, "0123456789") {
		return term
	}
	if len(term) != len(word) {
		word = norm.NFC.String(word)
	}
	env := snowballstem.NewEnv(strings.ToLower(word))
	languages[i].stem(env)
	if found := words.Normalize(env.Current()); found != "" {
		return found
	}
	return term
}
