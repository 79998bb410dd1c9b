package chatui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// chooseModel shows the chat models of the document, or lets another one answer.
func (c *Chat) chooseModel(ctx context.Context, id string) error {
	ids := c.modelIDs(ctx, "")
	switch {
	case id == "":
		c.printf("%s answers; models of the document: %s\n", terminal.Clean(c.modelName()), terminal.Clean(textfmt.List(ids)))
		return nil
	case !slices.Contains(ids, id):
		return fmt.Errorf("no chat model has the id %q%s; there are: %s", id, diag.DidYouMean(id, ids), textfmt.List(ids))
	case c.Reopen == nil:
		return fmt.Errorf("the model of this conversation cannot be changed")
	}
	app, target, err := c.Reopen(ctx, id)
	if err != nil {
		return err
	}
	old := c.App
	c.App, c.Target, c.model = app, target, id
	c.printf("%s answers from now on\n", terminal.Clean(c.modelName()))
	return old.Close(context.WithoutCancel(ctx))
}

// modelIDs returns the ids of the chat models that begin with a text.
func (c *Chat) modelIDs(_ context.Context, typed string) []string {
	var ids []string
	for _, m := range c.App.Spec().Models {
		if _, isChat := m.(*spec.Model); isChat && strings.HasPrefix(m.EntityID(), typed) {
			ids = append(ids, m.EntityID())
		}
	}
	return ids
}

// Complete completes the names and the arguments of commands.
func (c *Chat) Complete(ctx context.Context, typed string) (from int, candidates []string) {
	rest, ok := strings.CutPrefix(typed, "/")
	if !ok || strings.HasPrefix(rest, "/") {
		return 0, nil
	}
	c.changing.RLock()
	defer c.changing.RUnlock()
	word, argument, hasArgument := strings.Cut(rest, " ")
	for _, cmd := range c.available() {
		switch {
		case !hasArgument && cmd.help != "" && strings.HasPrefix(cmd.name, word):
			name := "/" + cmd.name
			if cmd.argument != "" {
				name += " "
			}
			candidates = append(candidates, name)
		case hasArgument && cmd.name == word && cmd.values != nil:
			return len(typed) - len(argument), cmd.values(c, ctx, argument)
		}
	}
	slices.Sort(candidates)
	return 0, candidates
}
