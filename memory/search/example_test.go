package search_test

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/spec/chat"
)

func ExampleSearcher_Search() {
	ctx := context.Background()
	m, err := memory.New(memory.Config{ID: "desk", Counter: words{}}, memory.NewInProcess())
	if err != nil {
		fmt.Println(err)
		return
	}
	for session, text := range map[string]string{memory.UserSession("ada", "1"): "My parcels were stolen.", memory.UserSession("bob", "1"): "A parcel is missing."} {
		if err := m.Append(ctx, session, chat.Text(chat.User, text)); err != nil {
			fmt.Println(err)
		}
	}
	found, err := search.New(m).Search(ctx, search.Query{Text: "parcel", Scope: search.User("ada")})
	if err != nil {
		fmt.Println(err)
	}
	for _, message := range found.Messages {
		fmt.Println(message.Session, message.Turn, message.Content)
	}
	// Output: ada/1 1 My parcels were stolen.
}
