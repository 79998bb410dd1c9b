package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cacheview"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/erasure"
	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
)

func newList(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "list", "List the sessions of each memory", withFormat)
	var o memoryview.ListOptions
	f := r.cmd.Flags()
	prefix := f.String("prefix", "", "only sessions whose ids begin with this `TEXT`")
	f.StringVar(&r.User, "user", "", "only sessions of this `USER`")
	older := f.Duration("older-than", 0, "only sessions whose newest message is older, as a `DURATION` such as 72h")
	newer := f.Duration("newer-than", 0, "only sessions whose newest message is newer, as a `DURATION`")
	f.IntVar(&o.Limit, "limit", 0, "the most `SESSIONS` (default: all)")
	f.StringVar(&o.After, "after", "", "only sessions after this `ID`, in the order of the list: the next page")
	sort := cli.NewEnumFlag(memoryview.Orders()...)
	sort.AddTo(r.cmd, "sort", "", "the order of sessions: id, last (newest message first) or size (most messages first)")
	r.check(func() error {
		if o.Limit < 0 || *older < 0 || *newer < 0 {
			return terminal.Usagef("--limit, --older-than and --newer-than must be positive")
		}
		return nil
	})
	return r.do(func(ctx context.Context, app *runtime.App) error {
		declared, err := r.Declared(app.Spec())
		if err != nil {
			return err
		}
		if o.After != "" && len(declared) > 1 {
			return terminal.Usagef("--after needs one memory: pass --memory")
		}
		o.Prefix, o.Sort = memory.UserPrefix(r.User)+*prefix, memoryview.Order(sort.Value)
		if *older > 0 {
			o.UsedBefore = time.Now().Add(-*older)
		}
		if *newer > 0 {
			o.UsedAfter = time.Now().Add(-*newer)
		}
		o.More = func(last string) {
			hint := "--limit"
			if len(declared) == 1 {
				hint = "--after " + terminal.Clean(last)
			}
			fmt.Fprintf(r.Err, "there are more sessions; %s shows them\n", hint)
		}
		var memories []memoryview.Memory
		for _, m := range declared {
			memories = append(memories, memoryview.Of(app, m.ID))
		}
		return r.view().List(ctx, memories, o)
	})
}

func newMemorySearch(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "search", "Find messages of stored conversations by words, and by meaning", withSession|withFormat, "a text")
	f := r.cmd.Flags()
	f.Lookup("session").Usage = "`ID` of the session (default: all)"
	f.Lookup("user").Usage = "`NAME` of the user whose sessions are searched"
	limit := f.IntP("limit", "n", search.DefaultLimit, "the maximum `NUMBER` of messages")
	least := f.Float64("min-score", 0, "the least `SCORE` of a message, such as 0.4")
	r.check(func() error {
		if !(*least >= 0) || math.IsInf(*least, 0) {
			return terminal.Usagef("--min-score must be a number from 0, not %v", *least)
		}
		if *limit < 1 || *limit > search.MaxLimit {
			return terminal.Usagef("--limit must be from 1 to %d, not %d", search.MaxLimit, *limit)
		}
		if strings.TrimSpace(f.Arg(1)) == "" {
			return terminal.Usagef("qtype memory search needs a text: qtype memory search APP TEXT")
		}
		return nil
	})
	return r.do(func(ctx context.Context, app *runtime.App) error {
		m, err := r.Open(app)
		if err != nil {
			return err
		}
		q := search.Query{Text: f.Arg(1), Limit: *limit, MinScore: *least, Scope: search.All()}
		switch {
		case r.Session != "":
			session, err := memoryview.FindSession(ctx, m, r.Stored(r.Session))
			if err != nil {
				return err
			}
			q.Scope = search.Session(session)
		case r.User != "":
			q.Scope = search.User(r.User)
		}
		found, err := app.Searcher(m.ID).Search(ctx, q)
		if err != nil {
			return err
		}
		if found.Problem != "" {
			fmt.Fprintf(r.Err, "warning: memory %s: not all messages were compared by meaning: %s\n", m.ID, found.Problem)
		}
		return r.view().Found(found.Messages)
	})
}

func newFacts(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "facts", "Show, add, edit or delete what a memory knows of a user", withSession|withFormat)
	r.cmd.Long = `Shows the facts that a model extracted from the messages of a user, those that no
longer hold included, each with the message that states it, its former texts and when they held.
With --add, --edit or --delete, changes them; a model cannot add a fact again that
was deleted this way.`
	r.cmd.Example = `  qtype memory facts app.qtype.yaml --user ada --yes
  qtype memory facts app.qtype.yaml --user ada --edit f3 --text 'The user lives in Rome.'
  qtype memory facts app.qtype.yaml --user ada --delete f3`
	var change memoryview.FactChange
	f := r.cmd.Flags()
	f.Lookup("session").Usage = "`ID` of the session"
	f.Lookup("user").Usage = "`USER` whose facts they are"
	f.StringVar(&change.Add, "add", "", "add a fact with this `TEXT`")
	f.StringVar(&change.Edit, "edit", "", "`ID` of the fact that gets --text")
	f.StringVar(&change.Text, "text", "", "the new `TEXT` of the fact of --edit")
	f.StringVar(&change.Delete, "delete", "", "`ID` of the fact to delete")
	r.check(func() error {
		set := slices.DeleteFunc([]string{"add", "edit", "delete"}, func(name string) bool { return !f.Changed(name) })
		switch {
		case len(set) > 1:
			return terminal.Usagef("--%s and --%s exclude each other", set[0], set[1])
		case f.Changed("text") != f.Changed("edit"):
			return terminal.Usagef("--edit needs --text with the new text of the fact, and --text needs --edit")
		}
		return nil
	})
	return r.do(func(ctx context.Context, app *runtime.App) error {
		m, err := r.WithFacts(app)
		switch {
		case err != nil:
			return err
		case r.User == "" && r.Session == "":
			return terminal.Usagef("whose facts? pass --user or --session")
		case change != memoryview.FactChange{}:
			return r.view().ChangeFact(ctx, m, &r.Selection, change)
		}
		return r.view().Facts(ctx, m, &r.Selection)
	})
}

func newForget(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "forget", "Delete everything that is stored of a user", withFormat)
	r.cmd.Long = `Deletes everything that is stored of a user: sessions, variables, facts, summaries
and vectors of all memories, sessions and runs of the server, and journals of interrupted
runs that have rows of the user, in the folder of the document and in those of --journals.
Caches of steps do not record whose results they have: they are cleared. Prints a receipt
that lists what was deleted and where was searched. Outputs of runs are not deleted.`
	r.cmd.Example = `  qtype memory forget app.qtype.yaml --user ada --yes
  qtype memory forget app.qtype.yaml --user ada --yes --format json > receipt.json`
	var cfg erasure.Config
	f := r.cmd.Flags()
	f.StringVar(&cfg.User, "user", "", "`USER` to forget (required)")
	f.StringArrayVar(&cfg.Journals, "journals", nil, "`FOLDER` that is searched for journals too; may be repeated")
	keepCaches := f.Bool("keep-caches", false, "do not clear the caches of steps")
	f.Lookup("memory").Hidden = true
	c := confirmation{Streams: s}
	c.addTo(f)
	r.check(func() error {
		switch {
		case cfg.User == "" && !f.Changed("user"):
			return terminal.Usagef("which user? pass --user")
		case r.Memory != "":
			return terminal.Usagef("forget deletes from all memories: leave out --memory")
		}
		return nil
	})
	return r.do(func(ctx context.Context, app *runtime.App) error {
		cfg.App, cfg.Journals = app, withFolderOf(app, cfg.Journals)
		if err := c.ask("forget", "everything of user "+terminal.Clean(cfg.User)); err != nil {
			return err
		}
		return withCaches(r.Streams, app, *keepCaches, func(caches cacheview.Caches) error {
			cfg.Caches = caches
			receipt, err := erasure.User(ctx, cfg)
			if receipt == nil {
				return err
			}
			if r.format.Value == "json" {
				return errors.Join(err, terminal.WriteJSON(r.Out, receipt))
			}
			return errors.Join(err, receipt.Write(r.Out))
		})
	})
}

// onMessage returns a subcommand that changes a message of a session. check rejects wrong flags;
// it may be nil.
func onMessage(s *cli.Streams, use, short, long string, check func() error, run func(*memoryview.View, context.Context, memoryview.Message) error) *cobra.Command {
	r := newMemoryCommand(s, use, short, withSession)
	r.cmd.Long = long
	message := r.cmd.Flags().String("message", "", "`ID` of the message, or its position in the history (required)")
	r.check(func() error {
		if check != nil {
			if err := check(); err != nil {
				return err
			}
		}
		if *message == "" {
			return terminal.Usagef("which message? pass --message with its id or its position")
		}
		return nil
	})
	return r.inSession(func(ctx context.Context, m memoryview.Memory, session string) error {
		return run(r.view(), ctx, memoryview.Message{Memory: m, Session: session, ID: *message})
	})
}

func newEditMessage(s *cli.Streams) *cobra.Command {
	var text, input string
	var c *cobra.Command
	c = onMessage(s, "edit", "Give a message of a session another text", `Gives a message another text; the former text stays in the history. The message keeps its
place and its role. qtype memory history --format json shows positions and ids.`, func() error {
		if c.Flags().Changed("text") == (input != "") {
			return terminal.Usagef("edit needs the new text: pass --text or --in")
		}
		return nil
	}, func(v *memoryview.View, ctx context.Context, m memoryview.Message) error {
		return v.Edit(ctx, m, func(old chat.Message) (chat.Message, error) {
			if input != "" {
				return readMessage(s, input)
			}
			return old.WithText(text), nil
		})
	})
	c.Example = `  qtype memory edit app.qtype.yaml --session c-1 --message 12 --text "a ticket to Basel"
  qtype memory edit app.qtype.yaml --session c-1 --message 12 --in message.json`
	c.Flags().StringVar(&text, "text", "", "the new `TEXT`")
	c.Flags().StringVar(&input, "in", "", "`FILE` with the new message as JSON, in OpenAI's format; - is standard input")
	return c
}

// readMessage reads a message of a file.
func readMessage(s *cli.Streams, path string) (chat.Message, error) {
	in, name, err := s.Open(path)
	if err != nil {
		return chat.Message{}, err
	}
	defer func() { _ = in.Close() }() // only read
	raw, err := io.ReadAll(in)
	if err == nil && strings.TrimSpace(string(raw)) == "" {
		err = errors.New("it is empty")
	}
	var msg chat.Message
	if err == nil {
		msg, err = chat.ParseOpenAI(raw)
	}
	if err != nil {
		return msg, fmt.Errorf("%s: %w", name, err)
	}
	return msg, nil
}

func newDeleteMessage(s *cli.Streams) *cobra.Command {
	return onMessage(s, "delete", "Remove a message from the conversation of a session", `Removes a message from the conversation, a tool call together with its results. The
message stays in the history; qtype memory clear deletes a session for good.`, nil, (*memoryview.View).Delete)
}

func newPin(s *cli.Streams) *cobra.Command {
	return onMessage(s, "pin", "Keep a message of a session in the window", `Keeps a message in the window, a tool call together with its results: other messages leave
in its place. It counts towards the limits of the memory.`, nil, (*memoryview.View).Pin)
}

func newUnpin(s *cli.Streams) *cobra.Command {
	return onMessage(s, "unpin", "Undo qtype memory pin", `The policy of the memory may evict the message again.`, nil, (*memoryview.View).Unpin)
}
