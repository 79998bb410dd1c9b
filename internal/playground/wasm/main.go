//go:build js && wasm

// Command wasm is the program of the playground page: package playground for browsers.
// The page supplies the JSON schema and the vocabularies, which are separate files.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"syscall/js"

	"github.com/qtype-dev/qtype/internal/playground"
	"github.com/qtype-dev/qtype/internal/tokenizer"
)

// memoryLimit is where the garbage collector works harder, in bytes.
const memoryLimit = 512 << 20

func main() {
	debug.SetMemoryLimit(memoryLimit)
	p := &page{}
	js.Global().Set("qtype", js.ValueOf(map[string]any{
		"start": function(p.start), "call": function(p.call), "supply": function(p.supply),
	}))
	select {}
}

// page is the session of the page.
type page struct{ session *playground.Session }

// function makes a function that returns a promise of its result: a JavaScript function
// must not wait for goroutines.
func function(f func(args []js.Value) (string, error)) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any {
		var executor js.Func
		executor = js.FuncOf(func(_ js.Value, settle []js.Value) any {
			go func() {
				defer executor.Release()
				text, err := recovered(f, args)
				if err != nil {
					settle[1].Invoke(js.Global().Get("Error").New(err.Error()))
					return
				}
				settle[0].Invoke(text)
			}()
			return nil
		})
		return js.Global().Get("Promise").New(executor)
	})
}

// recovered returns the result of f, or an error for a panic.
func recovered(f func([]js.Value) (string, error), args []js.Value) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error (a bug in qtype): %v", r)
		}
	}()
	return f(args)
}

// start starts the session: start(version, schema).
func (p *page) start(args []js.Value) (string, error) {
	s, err := playground.New(context.Background(), args[0].String(), args[1].String())
	p.session = s
	return "", err
}

// call calls a function of the session: call(name, parameters). It answers what
// playground.Session.Call returns, with the missing files of vocabularies.
func (p *page) call(args []js.Value) (string, error) {
	raw := p.session.Call(context.Background(), args[0].String(), []byte(args[1].String()))
	missing, err := json.Marshal(tokenizer.Missing())
	return fmt.Sprintf(`{"answer":%s,"missing":%s}`, raw, missing), err
}

// supply adds a vocabulary: supply(file, bytes).
func (p *page) supply(args []js.Value) (string, error) {
	content := make([]byte, args[1].Length())
	js.CopyBytesToGo(content, args[1])
	return "", tokenizer.Supply(args[0].String(), content)
}
