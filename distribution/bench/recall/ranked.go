package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/qtype-dev/qtype/internal/tokenizer"
)

// rankings are the ids of the messages that another system returns for the questions of each
// conversation, the best first. A question may have been asked twice: its rankings follow each other.
type rankings map[string][][]string

// readRankings reads a file of others.py, whose lines have the order of the questions.
func readRankings(path string) (rankings, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	all := rankings{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one struct {
			Conversation string   `json:"conversation"`
			IDs          []string `json:"ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all[one.Conversation] = append(all[one.Conversation], one.IDs)
	}
	return all, lines.Err()
}

// measure returns the scores of the evidence that is among the first messages of a
// ranking: those whose texts and authors fit the window with the question, without what else a request has
// for each message, or without a window as many as a search returns.
func (r rankings) measure(c *conversation, o *options) (sum score, err error) {
	if len(r[c.ID]) != len(c.Questions) {
		return sum, fmt.Errorf("conversation %s has %d questions and %d rankings", c.ID, len(c.Questions), len(r[c.ID]))
	}
	counter, err := tokenizer.For(tokenizer.Cl100k)
	if err != nil {
		return sum, err
	}
	tokens := map[string]int{}
	for _, t := range c.Turns {
		tokens[t.ID] = counter.Count(t.Author+": "+t.Text) + 1 // and a line end
	}
	for i := range c.Questions {
		q := &c.Questions[i]
		fit, room := r[c.ID][i], o.window-counter.Count(q.Question)
		if o.window == 0 {
			fit = fit[:min(o.limit, len(fit))]
		} else if end := slices.IndexFunc(fit, func(id string) bool { room -= tokens[id]; return room < 0 }); end >= 0 {
			fit = fit[:end]
		}
		sum.add(q, fit)
	}
	return sum, nil
}
