package ranking

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// A message mentions what happened on a day up to daysAfter days later.
const daysAfter = 7

// period is a time that a query mentions.
type period struct{ from, to time.Time }

// mentionedDate is a date of a query; 0 for a part that it does not name.
type mentionedDate struct{ year, month, day int }

// periods returns the times of messages, within first and last, that a query refers to:
// those of a day such as "May 3, 2023", "3 May" or 2023-05-03, of a month, and of a span before
// now such as "last week".
func periods(plain []string, now, first, last time.Time) []period {
	out := relativePeriods(plain, now)
	for _, d := range mentionedDates(plain) {
		years := []int{d.year}
		if d.year == 0 {
			years = nil
			for y := max(first.Year()-1, last.Year()-20); y <= last.Year(); y++ {
				years = append(years, y)
			}
		}
		for _, y := range years {
			from := time.Date(y, time.Month(d.month), max(d.day, 1), 0, 0, 0, 0, time.UTC)
			to := from.AddDate(0, 1, 0)
			if d.day > 0 {
				from, to = from.AddDate(0, 0, -1), from.AddDate(0, 0, daysAfter+1)
			}
			out = append(out, period{from, to})
		}
	}
	return out
}

// relativePeriods finds spans before now: today, yesterday, this or last week, month or year,
// 3 days, weeks, months or years ago. What happened in a span is mentioned in it or soon after.
func relativePeriods(plain []string, now time.Time) (out []period) {
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	for i, w := range plain {
		before := ""
		if i > 0 {
			before = plain[i-1]
		}
		switch count, ago := countOf(before), i+1 < len(plain) && plain[i+1] == "ago"; {
		case w == "today":
			out = append(out, period{day, day.AddDate(0, 0, 1)})
		case w == "yesterday":
			out = append(out, period{day.AddDate(0, 0, -1), day.AddDate(0, 0, 1)})
		case ago && count > 0:
			if from, to := back(day, w, count), back(day, w, count-1); from.Before(day) {
				slack := to.Sub(from) / 2
				out = append(out, period{from.Add(-slack), from.Add(slack).AddDate(0, 0, 1)})
			}
		case before == "last" || before == "this" || before == "past":
			if from := back(day, w, 1); from.Before(day) {
				if before == "last" {
					from = back(from, w, 1)
				}
				out = append(out, period{from, day.AddDate(0, 0, 1)})
			}
		}
	}
	return out
}

// back returns the day some days, weeks, months or years before; the same for another unit.
func back(day time.Time, unit string, n int) time.Time {
	switch strings.TrimSuffix(unit, "s") {
	case "day":
		return day.AddDate(0, 0, -n)
	case "week":
		return day.AddDate(0, 0, -7*n)
	case "month":
		return day.AddDate(0, -n, 0)
	case "year":
		return day.AddDate(-n, 0, 0)
	}
	return day
}

// countOf returns a number of up to 1,000 in digits or up to ten in words, 0 for another word.
func countOf(word string) int {
	if word == "a" || word == "an" {
		return 1
	}
	if n := slices.Index([]string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}, word); n >= 0 {
		return n + 1
	}
	if n := number(word); n > 0 && n <= 1_000 {
		return n
	}
	return 0
}

// mentionedDates finds the dates that the words of a query name.
func mentionedDates(plain []string) []mentionedDate {
	year := 0
	for _, w := range plain {
		if n := number(w); n >= 1900 && n < 2200 && year == 0 {
			year = n
		}
	}
	var out []mentionedDate
	for i, w := range plain {
		if n := number(w); n >= 1900 && n < 2200 && i+2 < len(plain) { // 2023-05-03
			if m, d := number(plain[i+1]), dayOf(plain[i+2]); len(plain[i+1]) == 2 && m >= 1 && m <= 12 && d > 0 {
				out = append(out, mentionedDate{n, m, d})
			}
			continue
		}
		m := monthOf(w)
		if m == 0 {
			continue
		}
		d := dayAround(plain, i)
		if d == 0 && w == "may" && (i == 0 || !slices.Contains([]string{"in", "of", "early", "late", "during", "since", "by", "until", "before", "after", "last"}, plain[i-1])) {
			continue // the verb
		}
		out = append(out, mentionedDate{year, m, d})
	}
	return out
}

// dayAround returns the day next to a month: May 3, 3 May, the 3rd of May; 0 for none.
func dayAround(plain []string, i int) int {
	if i+1 < len(plain) {
		if d := dayOf(plain[i+1]); d != 0 {
			return d
		}
	}
	if i > 1 && plain[i-1] == "of" {
		i--
	}
	if i > 0 {
		return dayOf(plain[i-1])
	}
	return 0
}

func monthOf(word string) int {
	for m := time.January; m <= time.December; m++ {
		if strings.EqualFold(m.String(), word) {
			return int(m)
		}
	}
	return 0
}

// dayOf returns the day of a month: 3, 3rd.
func dayOf(word string) int {
	for _, ending := range []string{"st", "nd", "rd", "th"} {
		word = strings.TrimSuffix(word, ending)
	}
	if n := number(word); n >= 1 && n <= 31 {
		return n
	}
	return 0
}

// number returns a number without a sign, -1 for another text.
func number(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return n
	}
	return -1
}

// asksWhen reports whether the query asks for a time, in English.
func (r *ranker) asksWhen() bool { return len(r.plain) > 0 && r.plain[0] == "when" }

// timeWords are words of messages that say when something is, or was.
const timeWords = "yesterday today tomorrow tonight last next ago week weekend month year since recently " +
	"monday tuesday wednesday thursday friday saturday sunday " +
	"january february march april june july august september october november december"

// raiseTimes raises the scores of short documents that name a time.
func (r *ranker) raiseTimes(own []float32) {
	marked := r.scratch.marked
	var raised []int32
	for word := range strings.FieldsSeq(timeWords) {
		term := stem(word)
		r.learnTerm(term)
		id, known := r.ids[term]
		if !known {
			continue
		}
		for _, p := range r.kept(id) {
			if doc := int32(p >> countBits); own[doc] > 0 && !marked[doc] && r.wholes[doc] <= dampedWords {
				own[doc] *= 1 + namedTime
				marked[doc] = true
				raised = append(raised, doc)
			}
		}
	}
	for _, doc := range raised {
		marked[doc] = false
	}
}
